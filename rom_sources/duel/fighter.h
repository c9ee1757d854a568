#pragma once
#include <stdint.h>

enum state {
    STAND,
    WALK,
    BLOCK,
    JUMP,
    PUNCH,
    KICK,
    JUMP_KICK,
    LAND,        // the short crouch after a jump kick
    HIT,         // reels, cannot act
    GUARD_STUN,  // the blow was blocked, cannot act for a moment
    KNOCKED_OUT,
    WIN,
};

enum phase { NO_PHASE, STARTUP, ACTIVE, RECOVERY };

// The order of the fields is the order of the labels in state.s.
struct fighter {
    uint8_t x;       // centre, pixels from the left of the screen
    uint8_t height;  // feet above the floor
    uint8_t state;
    uint8_t frames;  // spent in this state
    uint8_t phase;   // of the attack
    uint8_t health;
    uint8_t rounds;   // won
    uint8_t buttons;  // wished for: BUTTON_RIGHT is "towards the foe" for both fighters
    uint8_t stun;     // frames left of HIT or GUARD_STUN
    uint8_t push;     // frames left of sliding away from the foe
    uint8_t air;      // frames since take-off, 0 on the floor
    uint8_t drift;    // buttons held at take-off: the jump's direction
    uint8_t windup;   // frames added to every start-up: how the opponent of level 1 announces its blows
    uint8_t haste;    // frames cut from every recovery
    uint8_t has_hit;  // this attack has connected
    uint8_t faces_left;
};

struct move {
    uint8_t startup, active, recovery;
    uint8_t reach;  // distance of the two centres
    uint8_t lowest, highest;  // heights of the foe's feet at which it connects
    uint8_t damage, chip;     // chip: damage to a foe who blocks
    uint8_t stun, guard_stun;
    uint8_t push;
};

#define FULL_HEALTH 64
#define FLOOR_Y 120
#define WALL_LEFT 20
#define WALL_RIGHT 140
#define BODY_GAP 20  // the fighters' centres never come closer

extern struct fighter player, opponent;
extern const struct move punch_move, kick_move, jump_kick_move;

enum contact { NO_CONTACT, CONTACT_HIT, CONTACT_GUARD };

void fighter_place(struct fighter *me, uint8_t x);
void fighter_enter(struct fighter *me, uint8_t state);
void fighter_update(struct fighter *me);
uint8_t fighter_can_act(const struct fighter *me);
void fighters_separate(void);
const struct move *fighter_attack(const struct fighter *me);  // the attack that can connect in this frame, or 0
uint8_t fighter_take(struct fighter *me, const struct move *blow);
