// The opponent holds buttons like a player does. It follows a plan (buttons for some frames), drops it when it reacts to
// what the player does, and makes a new one at random, by distance, when the old one has run out.
#include "opponent.h"

#include "fighter.h"
#include "input.h"
#include "random.h"

#define FORWARD BUTTON_RIGHT
#define BACK BUTTON_LEFT

#define NEAR 33    // a punch reaches
#define MIDDLE 40  // a kick reaches
#define DANGER 46  // nearer than this, the player's attacks are worth a reaction

#define AIR_LATE 24       // frames since take-off when a blow will meet the player at the landing
#define STRIKE_FRAMES 12  // an attack button is held until the attack begins, through a guard stun too

// Chances are out of 256. Times are frames.
struct level {
    uint8_t windup;             // added to the start-up of every attack
    uint8_t haste;              // taken from the recovery of every attack
    uint8_t pause, pause_mask;  // between two plans: pause + (random & mask)
    uint8_t reaction;           // after the player's attack began
    uint8_t guard_chance;       // ... to block it
    uint8_t punish_chance;      // ... to strike into its recovery
    uint8_t anti_air_chance;    // ... to meet a jumping player
    uint8_t interrupt_chance;   // ... to punch into the start-up of a kick
    uint8_t habit;              // chance of a guard without a reason when a kick could reach
    uint8_t attack_near, attack_middle;  // chances of a plan that strikes
    uint8_t punches;                     // share of punches among the strikes from near
    uint8_t advance;                     // chance of walking in when far
};

static const struct level levels[LEVELS] = {
    {4, 0, 2, 7, 4, 200, 240, 220, 0, 70, 170, 190, 130, 235},
    {2, 3, 2, 7, 3, 220, 250, 230, 50, 90, 180, 130, 190, 240},
    {0, 6, 1, 3, 2, 240, 255, 242, 110, 110, 210, 60, 235, 250},
};

static const struct level *level;
static uint8_t plan, plan_frames;
static uint8_t seen_state, seen_frames;  // the player's state, and for how long the opponent has seen it

void opponent_begin_round(uint8_t number) {
    level = &levels[number - 1];
    opponent.windup = level->windup;
    opponent.haste = level->haste;
    plan = 0;
    plan_frames = 12;
    seen_state = STAND;
    seen_frames = 0;
}

static void follow(uint8_t buttons_held, uint8_t frames) {
    plan = buttons_held;
    plan_frames = frames;
}

static uint8_t chance(uint8_t of_256) { return random() < of_256; }

static void strike(uint8_t gap) { follow(gap <= NEAR && chance(level->punches) ? BUTTON_A : BUTTON_B, STRIKE_FRAMES); }

static void strike_fast(uint8_t gap) { follow(gap <= NEAR ? BUTTON_A : BUTTON_B, STRIKE_FRAMES); }

static void make_plan(uint8_t gap) {
    uint8_t pause = level->pause + (random() & level->pause_mask);
    if (gap <= MIDDLE && chance(level->habit)) {
        follow(BUTTON_DOWN, pause + 6);
    } else if (gap <= NEAR) {
        if (chance(level->attack_near)) {
            strike(gap);
        } else {
            follow(random() & 1 ? BACK : BUTTON_DOWN, pause);
        }
    } else if (gap <= MIDDLE) {
        if (chance(level->attack_middle)) {
            strike(gap);
        } else {
            uint8_t dice = random() & 3;
            follow(dice == 0 ? BACK : dice == 1 ? 0 : FORWARD, pause);
        }
    } else if (chance(level->advance)) {
        follow(random() < 14 ? FORWARD | BUTTON_UP : FORWARD, pause);
    } else {
        follow(0, pause);
    }
}

// Each event of the player is looked at once, `reaction` frames after it happened, so that it gives one throw of the dice.
static void react(uint8_t gap) {
    uint8_t state = player.state;
    if (state != seen_state) {
        seen_state = state;
        seen_frames = 0;
    } else if (seen_frames < 250) {
        seen_frames++;
    }
    if (gap > DANGER + 10) return;
    if (state == PUNCH || state == KICK) {
        if (player.phase == RECOVERY) {
            const struct move *blow = state == PUNCH ? &punch_move : &kick_move;
            if (seen_frames == blow->startup + blow->active + 1 && gap <= MIDDLE) {
                if (chance(level->punish_chance)) strike_fast(gap);
            }
        } else if (seen_frames == level->reaction && gap <= DANGER) {
            if (state == KICK && gap <= NEAR && chance(level->interrupt_chance)) {
                follow(BUTTON_A, STRIKE_FRAMES);
            } else if (chance(level->guard_chance)) {
                follow(BUTTON_DOWN, state == PUNCH ? 10 : 18);
            }
        }
    } else if (state == JUMP || state == JUMP_KICK) {
        if (player.air == level->reaction + 8) {
            if (chance(level->anti_air_chance)) follow(BUTTON_DOWN, state == JUMP ? 10 : 20);
        } else if (player.air == AIR_LATE && gap <= MIDDLE && state == JUMP) {
            if (chance(level->anti_air_chance)) strike_fast(gap);
        }
    } else if (state == LAND && seen_frames == 1 && gap <= MIDDLE) {
        if (chance(level->punish_chance)) strike_fast(gap);
    }
}

void opponent_think(void) {
    uint8_t gap = opponent.x - player.x;
    if (opponent.phase != NO_PHASE || opponent.state == HIT) plan_frames = 0;
    react(gap);
    if (plan_frames) {
        plan_frames--;
    } else if (fighter_can_act(&opponent)) {
        make_plan(gap);
    } else {
        plan = 0;
    }
    opponent.buttons = plan;
}
