// Snails crawl and turn at edges, bees dance up and down. Each moves in every second frame, and draws from the random numbers
// when its timer is out: at its first move, so that what a trainer writes to rng_seed counts at once.
#include "creatures.h"

#include "level.h"
#include "random.h"

#define SIGHT 176  // pixels from the left edge of the screen at which a creature begins to live
#define PUFF_MOVES 10
#define REACH_X 10
#define REACH_Y 12

static const uint8_t *next;
static uint8_t turn;
static const int8_t dance[16] = {0, 2, 5, 8, 10, 12, 13, 13, 12, 10, 8, 5, 2, 0, -2, -2};

void creatures_load(const uint8_t *from) {
    next = from;
    creatures[0].kind = creatures[1].kind = creatures[2].kind = NOTHING;
}

static struct creature *free_slot(void) {
    uint8_t i;
    for (i = 0; i < CREATURES; i++) {
        if (creatures[i].kind == NOTHING) return &creatures[i];
    }
    return 0;
}

static void wake_next(void) {
    struct creature *one;
    uint16_t x;
    if (next[1] == 255) return;
    x = ((uint16_t)next[1] << 4) + 8;
    if (x > camera + SIGHT) return;
    one = free_slot();
    if (!one) return;
    one->kind = next[0];
    one->x = x;
    one->y = one->home = (next[2] << 4) + 8;
    one->dx = -1;
    one->timer = 1;
    one->steps = 0;
    next += 3;
}

static void move_snail(struct creature *me) {
    uint16_t ahead;
    if (--me->timer == 0) {
        uint8_t chance = random();
        me->timer = 40 + (chance & 63);
        me->dx = chance & 0x40 ? 1 : -1;
    }
    ahead = me->dx < 0 ? me->x - 8 : me->x + 8;
    if (level_kind(ahead, me->y) & KIND_SOLID || !(level_kind(ahead, me->y + 16) & KIND_SOLID)) {
        me->dx = -me->dx;
    } else if (me->steps & 1) {
        me->x += me->dx;
    }
}

static void move_bee(struct creature *me) {
    if (--me->timer == 0) {
        uint8_t chance = random();
        me->timer = 24 + (chance & 31);
        me->dx = chance & 0x40 ? 1 : -1;
        if (chance & 0x80) me->steps += 8;
    }
    if (me->steps & 1) me->x += me->dx;
    me->y = me->home + dance[(me->steps >> 2) & 15];
}

static void move(struct creature *me) {
    if (me->x + 24 < camera) {
        me->kind = NOTHING;
        return;
    }
    me->steps++;
    switch (me->kind) {
        case SNAIL:
            move_snail(me);
            break;
        case BEE:
            move_bee(me);
            break;
        default:
            if (--me->timer == 0) me->kind = NOTHING;
    }
}

void creatures_update(void) {
    turn ^= 1;
    if (turn) {
        wake_next();
        if (creatures[1].kind) move(&creatures[1]);
    } else {
        if (creatures[0].kind) move(&creatures[0]);
        if (creatures[2].kind) move(&creatures[2]);
    }
}

static uint8_t touches(const struct creature *one, uint16_t x, uint8_t y) {
    uint16_t distance;
    if (one->kind == NOTHING || one->kind == PUFF) return 0;
    distance = one->x - x + REACH_X;
    if (distance > 2 * REACH_X) return 0;
    return (uint8_t)(one->y - y + REACH_Y) <= 2 * REACH_Y;
}

struct creature *creatures_touching(uint16_t x, uint8_t y) {
    uint8_t i;
    for (i = 0; i < CREATURES; i++) {
        if (touches(&creatures[i], x, y)) return &creatures[i];
    }
    return 0;
}
