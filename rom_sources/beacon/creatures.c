// Crabs walk, bats flutter, ghosts follow. Each moves in every second frame, and draws from the random numbers when its timer
// is out: at the first move of a room, so that what a trainer writes to rng_seed counts at once.
#include "creatures.h"

#include "player.h"
#include "random.h"
#include "room.h"

#define DAZZLED_MOVES 90
#define LANTERN_REACH 48
#define TOUCH 10  // pixels between the middles

#define AIR_LEFT 26
#define AIR_RIGHT 134
#define AIR_TOP 40
#define AIR_BOTTOM 120

static uint8_t turn;
static const int8_t bat_speeds[4] = {-2, -1, 1, 2};

void creatures_load(const uint8_t *from) {
    struct creature *one = creatures;
    uint8_t left = CREATURES;
    while (left--) {
        one->kind = *from++;
        one->x = *from++;
        one->y = *from++;
        one->dx = one->dy = 0;
        one->timer = 1;
        one->dazzled = 0;
        one->steps = 0;
        one++;
    }
}

static void move_crab(struct creature *me) {
    uint8_t ahead;
    if (--me->timer == 0) {
        uint8_t chance = random();
        me->timer = 24 + (chance & 31);
        me->dx = chance & 0x40 ? 1 : -1;
        if (!(chance & 0xB0)) me->dx = 0;
    }
    if (me->dx == 0) return;
    ahead = me->x + (me->dx < 0 ? -8 : 8);
    if (ahead < 4 || ahead > 156 || CELL_AT(ahead, me->y) & KIND_SOLID) {
        me->dx = -me->dx;
    } else {
        me->x += me->dx;
    }
}

static void move_bat(struct creature *me) {
    if (--me->timer == 0) {
        uint8_t chance = random();
        me->timer = 12 + ((chance >> 3) & 31);
        me->dx = bat_speeds[chance & 3];
        me->dy = bat_speeds[(chance >> 2) & 3];
    }
    me->x += me->dx;
    me->y += me->dy;
    if (me->x < AIR_LEFT) me->dx = 1;
    if (me->x > AIR_RIGHT) me->dx = -1;
    if (me->y < AIR_TOP) me->dy = 1;
    if (me->y > AIR_BOTTOM) me->dy = -1;
}

// A ghost passes through walls. Most of the time it follows the keeper; sometimes it drifts away for a while.
static void move_ghost(struct creature *me) {
    if (--me->timer == 0) {
        uint8_t chance = random();
        me->timer = 20 + (chance & 31);
        me->dx = me->dy = 0;
        if (!(chance & 0x60)) {
            me->dx = chance & 0x80 ? 1 : -1;
            me->dy = chance & 0x10 ? 1 : -1;
        }
    }
    if ((me->steps & 3) == 0) return;
    if (me->dx) {
        if (me->x > AIR_LEFT && me->x < AIR_RIGHT) me->x += me->dx;
        if (me->y > AIR_TOP && me->y < AIR_BOTTOM) me->y += me->dy;
        return;
    }
    if (me->x < player_x) me->x++;
    if (me->x > player_x) me->x--;
    if (me->y < player_y) me->y++;
    if (me->y > player_y) me->y--;
}

static void move(struct creature *me) {
    me->steps++;
    if (me->dazzled) {
        me->dazzled--;
        return;
    }
    switch (me->kind) {
        case CRAB:
            move_crab(me);
            break;
        case BAT:
            move_bat(me);
            break;
        default:
            move_ghost(me);
    }
}

void creatures_update(void) {
    turn ^= 1;
    if (turn) {
        if (creatures[1].kind) move(&creatures[1]);
    } else {
        if (creatures[0].kind) move(&creatures[0]);
        if (creatures[2].kind) move(&creatures[2]);
    }
}

static uint8_t is_near(const struct creature *one, uint8_t reach) {
    uint8_t distance = one->x - player_x + reach;
    if (distance > (uint8_t)(2 * reach)) return 0;
    distance = one->y - player_y + reach;
    return distance <= (uint8_t)(2 * reach);
}

void creatures_dazzle(void) {
    uint8_t i;
    for (i = 0; i < CREATURES; i++) {
        if (is_near(&creatures[i], LANTERN_REACH)) creatures[i].dazzled = DAZZLED_MOVES;
    }
}

static uint8_t touches(const struct creature *one) { return one->kind && !one->dazzled && is_near(one, TOUCH - 1); }

uint8_t creatures_touch_keeper(void) { return touches(&creatures[0]) || touches(&creatures[1]) || touches(&creatures[2]); }
