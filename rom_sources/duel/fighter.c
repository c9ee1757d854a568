// What a fighter can do. Both obey the same rules; only the source of their buttons differs.
#include "fighter.h"

#include "input.h"
#include "effects.h"

//                             start act rec reach low high dmg chip stun guard push
const struct move punch_move = {6, 4, 11, 33, 0, 34, 8, 1, 14, 7, 6};
const struct move kick_move = {14, 5, 24, 40, 0, 12, 14, 3, 18, 9, 9};
const struct move jump_kick_move = {5, 12, 0, 34, 0, 40, 8, 2, 16, 6, 7};

#define LAND_FRAMES 12
#define FALL_SPEED 3
#define PUSH_SPEED 2
#define GUARD_PUSH 2
#define JUMP_FRAMES 34

static const uint8_t jump_heights[JUMP_FRAMES] = {
    4, 8, 12, 15, 18, 21, 24, 26, 28, 30, 32, 33, 34, 35, 36, 36, 36,
    36, 36, 35, 34, 33, 32, 30, 28, 26, 24, 21, 18, 15, 12, 8, 4, 0,
};

void fighter_enter(struct fighter *me, uint8_t state) {
    me->state = state;
    me->frames = 0;
    me->phase = NO_PHASE;
    me->has_hit = 0;
}

void fighter_place(struct fighter *me, uint8_t x) {
    fighter_enter(me, STAND);
    me->x = x;
    me->height = 0;
    me->air = 0;
    me->push = 0;
    me->stun = 0;
    me->buttons = 0;
    me->health = FULL_HEALTH;
}

uint8_t fighter_can_act(const struct fighter *me) { return me->state <= BLOCK; }

static void move_by(struct fighter *me, uint8_t pixels, uint8_t forward) {
    if ((me->faces_left != 0) == (forward != 0)) {
        me->x -= pixels;
        if (me->x < WALL_LEFT) me->x = WALL_LEFT;
    } else {
        me->x += pixels;
        if (me->x > WALL_RIGHT) me->x = WALL_RIGHT;
    }
}

static void attack(struct fighter *me, uint8_t state) {
    fighter_enter(me, state);
    me->phase = STARTUP;
    sound_swing();
}

// One frame of a fighter who may choose. A held button repeats its attack; an attack wins over a jump over a guard.
static void act(struct fighter *me) {
    uint8_t wish = me->buttons;
    if (wish & BUTTON_A) {
        attack(me, PUNCH);
    } else if (wish & BUTTON_B) {
        attack(me, KICK);
    } else if (wish & BUTTON_UP) {
        fighter_enter(me, JUMP);
        me->drift = wish & (BUTTON_LEFT | BUTTON_RIGHT);
        me->air = 0;
    } else if (wish & BUTTON_DOWN) {
        if (me->state != BLOCK) fighter_enter(me, BLOCK);
    } else if (wish & (BUTTON_LEFT | BUTTON_RIGHT)) {
        if (me->state != WALK) fighter_enter(me, WALK);
        if (wish & BUTTON_RIGHT) {
            move_by(me, 1 + (me->frames & 1), 1);
        } else {
            move_by(me, 1, 0);
        }
    } else if (me->state != STAND) {
        fighter_enter(me, STAND);
    }
}

// Start-up, active frames, recovery: the phases of an attack on the floor.
static void strike(struct fighter *me, const struct move *blow) {
    uint8_t at = me->frames, limit = blow->startup + me->windup;
    if (at < limit) return;
    limit += blow->active;
    if (at < limit) {
        me->phase = ACTIVE;
        return;
    }
    me->phase = RECOVERY;
    limit += blow->recovery - me->haste;
    if (at >= limit) fighter_enter(me, STAND);
}

static void fly(struct fighter *me) {
    me->height = jump_heights[me->air++];
    if (me->drift) move_by(me, (me->air & 1) + 1, me->drift & BUTTON_RIGHT);
    if (me->state == JUMP) {
        if (me->buttons & (BUTTON_A | BUTTON_B) && me->air > 4 && me->air < JUMP_FRAMES - 6) attack(me, JUMP_KICK);
    } else if (me->frames == jump_kick_move.startup) {
        me->phase = ACTIVE;
    } else if (me->frames == jump_kick_move.startup + jump_kick_move.active) {
        me->phase = RECOVERY;
    }
    if (me->air >= JUMP_FRAMES) {
        me->air = 0;
        fighter_enter(me, me->state == JUMP_KICK ? LAND : STAND);
    }
}

static void fall(struct fighter *me) {
    me->air = 0;
    if (me->height > FALL_SPEED) {
        me->height -= FALL_SPEED;
    } else {
        me->height = 0;
    }
}

void fighter_update(struct fighter *me) {
    me->frames++;
    if (me->push) {
        me->push--;
        move_by(me, PUSH_SPEED, 0);
    }
    switch (me->state) {
        case PUNCH:
            strike(me, &punch_move);
            break;
        case KICK:
            strike(me, &kick_move);
            break;
        case JUMP:
        case JUMP_KICK:
            fly(me);
            break;
        case LAND:
            if (me->frames >= LAND_FRAMES) fighter_enter(me, STAND);
            break;
        case HIT:
        case GUARD_STUN:
            if (me->height) fall(me);
            if (me->stun) me->stun--;
            if (me->stun == 0 && me->height == 0) {
                fighter_enter(me, STAND);
                act(me);
            }
            break;
        case KNOCKED_OUT:
        case WIN:
            if (me->height) fall(me);
            if (me->frames == 255) me->frames = 254;
            break;
        default:
            act(me);
    }
}

// The fighters push each other away; the one at a wall stays. The player is always on the left.
void fighters_separate(void) {
    uint8_t gap = opponent.x - player.x, half;
    if (gap >= BODY_GAP) return;
    gap = BODY_GAP - gap;
    half = gap >> 1;
    opponent.x += half;
    player.x -= gap - half;
    if (player.x < WALL_LEFT) {
        player.x = WALL_LEFT;
        if (opponent.x < WALL_LEFT + BODY_GAP) opponent.x = WALL_LEFT + BODY_GAP;
    }
    if (opponent.x > WALL_RIGHT) {
        opponent.x = WALL_RIGHT;
        if (player.x > WALL_RIGHT - BODY_GAP) player.x = WALL_RIGHT - BODY_GAP;
    }
}

const struct move *fighter_attack(const struct fighter *me) {
    if (me->phase != ACTIVE || me->has_hit) return 0;
    if (me->state == PUNCH) return &punch_move;
    if (me->state == KICK) return &kick_move;
    return &jump_kick_move;
}

// The fighter is struck. A guard holds only on the floor; in the corner it is the striker who slides (see match.c).
uint8_t fighter_take(struct fighter *me, const struct move *blow) {
    uint8_t guarded = me->state == BLOCK || me->state == GUARD_STUN;
    uint8_t damage = guarded ? blow->chip : blow->damage;
    me->health = me->health > damage ? me->health - damage : 0;
    me->push = blow->push;
    if (guarded) {
        me->push = GUARD_PUSH;
        fighter_enter(me, GUARD_STUN);
        me->stun = blow->guard_stun;
        sound_guard();
        return CONTACT_GUARD;
    }
    fighter_enter(me, HIT);
    me->stun = blow->stun;
    sound_hit();
    return CONTACT_HIT;
}
