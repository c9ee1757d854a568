// One fight: best of three rounds.
#include "match.h"

#include "art.h"
#include "fighter.h"
#include "input.h"
#include "opponent.h"
#include "screen.h"
#include "effects.h"
#include "sprites.h"

#define ROUNDS_TO_WIN 2
#define LAST_ROUND 3

#define INTRO_FRAMES 28
#define FIGHT_BANNER_FRAMES 24
#define ROUND_OVER_FRAMES 44
#define RESULT_FRAMES 56         // from the last blow to the words YOU WIN
#define PLAY_AGAIN_FRAMES 200    // ... to the question. The result stays in RAM until the next fight begins
#define FRAMES_PER_TENTH 6

#define PLAYER_START 52
#define OPPONENT_START 108

uint8_t level, round_number, fight_timer, fight_result, match_phase;
static uint8_t phase_frames, tenth_frames, timer_tens, timer_ones;
static uint8_t shown_player_health, shown_opponent_health;

static const char *const opponent_names[LEVELS] = {"PAWN", "ROOK", "KING"};
static const char *const round_names[LAST_ROUND] = {"ROUND 1", "ROUND 2", "ROUND 3"};

// --- the rows at the top of the screen ---

static void draw_bar(uint8_t *to, uint8_t health, const uint8_t *tiles, uint8_t from_right) {
    uint8_t i;
    if (from_right) to += 7;
    for (i = 0; i < 8; i++) {
        uint8_t part = health > 8 ? 8 : health;
        health -= part;
        *to = tiles[part];
        if (from_right) {
            to--;
        } else {
            to++;
        }
    }
    live_rows_changed |= 1 << ROW_BARS;
}

static void draw_timer(void) {
    live_rows[ROW_BARS][9] = timer_tens + TILE_0;
    live_rows[ROW_BARS][10] = timer_ones + TILE_0;
    live_rows_changed |= 1 << ROW_BARS;
}

static void draw_health(void) {
    if (shown_player_health != player.health) {
        shown_player_health = player.health;
        draw_bar(live_rows[ROW_BARS] + 1, player.health, bar_LEFT, 0);
    }
    if (shown_opponent_health != opponent.health) {
        shown_opponent_health = opponent.health;
        draw_bar(live_rows[ROW_BARS] + 11, opponent.health, bar_RIGHT, 1);
    }
}

static void draw_markers(void) {
    uint8_t *row = live_rows[ROW_NAMES];
    row[1] = player.rounds > 0 ? TILE_MARKER_WON : TILE_MARKER_OPEN;
    row[2] = player.rounds > 1 ? TILE_MARKER_WON : TILE_MARKER_OPEN;
    row[18] = opponent.rounds > 0 ? TILE_MARKER_WON : TILE_MARKER_OPEN;
    row[17] = opponent.rounds > 1 ? TILE_MARKER_WON : TILE_MARKER_OPEN;
    live_rows_changed |= 1 << ROW_NAMES;
}

// --- fighters on the screen ---

static const uint8_t state_poses[] = {
    POSE_STAND, POSE_STAND,   POSE_BLOCK, POSE_JUMP,  POSE_PUNCH, POSE_KICK,
    POSE_JUMP_KICK, POSE_RECOVER, POSE_HIT, POSE_BLOCK, POSE_KO,    POSE_WIN,
};
static const uint8_t walk_poses[] = {POSE_WALK_WIDE, POSE_STAND, POSE_WALK_CLOSE, POSE_STAND};

static void show(const struct fighter *me, struct puppet *puppet) {
    uint8_t state = me->state, pose = state_poses[state], next = POSE_STAND;
    switch (state) {
        case WALK:
            pose = walk_poses[(me->frames >> 3) & 3];
            next = POSE_BLOCK;
            break;
        case PUNCH:
        case KICK:
            if (me->phase == STARTUP) {
                next = pose;
                pose = state == PUNCH ? POSE_PUNCH_WINDUP : POSE_KICK_WINDUP;
            } else if (me->phase == RECOVERY) {
                pose = POSE_RECOVER;
            } else {
                next = POSE_RECOVER;
            }
            break;
        case JUMP:
            next = POSE_JUMP_KICK;
            break;
        case JUMP_KICK:
            next = POSE_RECOVER;
            break;
        case KNOCKED_OUT:
            if (me->frames < 14) {
                pose = POSE_HIT;
                next = POSE_KO;
            }
            break;
        case STAND:
            next = POSE_BLOCK;
    }
    sprites_pose(puppet, pose, next, me->x, FLOOR_Y - me->height);
}

// What show() depends on, compared before it is called: most frames change nothing, and on this processor two direct
// comparisons are far cheaper than a walk through pointers.
struct view {
    uint8_t x, height, state, phase;
};
static struct view player_view, opponent_view;

#define HAS_CHANGED(me, seen, puppet)                                                                              \
    (me.x != seen.x || me.state != seen.state || me.phase != seen.phase || me.height != seen.height || puppet.left || \
     puppet.waits || me.state == KNOCKED_OUT || me.state == WALK)

#define REMEMBER(me, seen) \
    seen.x = me.x;         \
    seen.state = me.state; \
    seen.phase = me.phase; \
    seen.height = me.height

static void show_fighters(void) {
    if (HAS_CHANGED(player, player_view, player_puppet)) {
        REMEMBER(player, player_view);
        show(&player, &player_puppet);
    }
    if (HAS_CHANGED(opponent, opponent_view, opponent_puppet)) {
        REMEMBER(opponent, opponent_view);
        show(&opponent, &opponent_puppet);
    }
}

// --- rules ---

static void enter_phase(uint8_t phase) {
    match_phase = phase;
    phase_frames = 0;
}

static void begin_round(void) {
    fighter_place(&player, PLAYER_START);
    fighter_place(&opponent, OPPONENT_START);
    opponent_begin_round(level);
    fight_timer = 90;
    tenth_frames = 0;
    timer_tens = 9;
    timer_ones = 0;
    draw_health();
    draw_timer();
    draw_markers();
    screen_centre(ROW_BANNER, round_names[round_number - 1]);
    enter_phase(ROUND_INTRO);
}

void match_begin(void) {
    screen_show(stage_map);
    player_view.x = opponent_view.x = 0;  // nobody stands there: both are drawn
    shown_player_health = shown_opponent_health = 0xFF;
    player.faces_left = 0;
    opponent.faces_left = 1;
    player.windup = player.haste = 0;
    player.rounds = opponent.rounds = 0;
    round_number = 1;
    fight_result = RESULT_NONE;
    screen_text(ROW_NAMES, 4, "KITE");
    screen_text(ROW_NAMES, 12, opponent_names[level - 1]);
    begin_round();
}

static void end_fighter(struct fighter *me, uint8_t won) {
    if (me->health == 0) {
        fighter_enter(me, KNOCKED_OUT);
    } else if (me->height == 0) {
        fighter_enter(me, won ? WIN : STAND);
    } else {
        fighter_enter(me, HIT);  // comes down and stays
    }
    me->buttons = 0;
}

// The round is decided by health: by a knock-out or when the time is up. A drawn round counts for nobody. Whoever has more
// rounds after the third wins the fight; if nobody has, the challenger has not beaten the champion and loses.
static void end_round(const char *banner) {
    uint8_t player_won = player.health > opponent.health, opponent_won = player.health < opponent.health;
    if (player_won) player.rounds++;
    if (opponent_won) opponent.rounds++;
    end_fighter(&player, player_won);
    end_fighter(&opponent, opponent_won);
    draw_markers();
    screen_centre(ROW_BANNER, player_won || opponent_won ? banner : "DRAW");
    if (player.rounds == ROUNDS_TO_WIN || opponent.rounds == ROUNDS_TO_WIN || round_number == LAST_ROUND) {
        fight_result = player.rounds > opponent.rounds ? RESULT_WON : RESULT_LOST;
        enter_phase(FIGHT_OVER);
    } else {
        enter_phase(ROUND_OVER);
    }
}

static uint8_t land(struct fighter *me, struct fighter *foe, const struct move *blow) {
    uint8_t contact, gap = opponent.x - player.x;
    if (gap > blow->reach || foe->height < blow->lowest || foe->height > blow->highest) return 0;
    me->has_hit = 1;
    contact = fighter_take(foe, blow);
    if (foe->x < WALL_LEFT + 12 || foe->x > WALL_RIGHT - 12) me->push = blow->push;
    sprites_spark(contact == CONTACT_HIT ? spark_HIT : spark_GUARD,
                  foe->faces_left ? foe->x - 8 : foe->x + 8, FLOOR_Y - 38 - foe->height, 8);
    return 1;
}

// Both attacks are looked at before either counts, so two blows in the same frame both land.
static void exchange_blows(void) {
    const struct move *by_player = fighter_attack(&player), *by_opponent = fighter_attack(&opponent);
    if (by_player) land(&player, &opponent, by_player);
    if (by_opponent) land(&opponent, &player, by_opponent);
    if (by_player || by_opponent) draw_health();
}

static void count_down(void) {
    if (++tenth_frames < FRAMES_PER_TENTH) return;
    tenth_frames = 0;
    fight_timer--;
    if (timer_ones == 0) {
        timer_ones = 10;
        timer_tens--;
    }
    timer_ones--;
    draw_timer();
}

static void run_round(void) {
    player.buttons = buttons;
    opponent_think();
    fighter_update(&player);
    fighter_update(&opponent);
    fighters_separate();
    exchange_blows();
    count_down();
    if (phase_frames == FIGHT_BANNER_FRAMES) screen_clear(ROW_BANNER);
    if (player.health == 0 || opponent.health == 0) {
        sound_knock_out();
        end_round("K.O.");
    } else if (fight_timer == 0) {
        sound_bell();
        end_round("TIME UP");
    }
}

static void run_after_round(void) {
    player.buttons = 0;
    opponent.buttons = 0;
    fighter_update(&player);
    fighter_update(&opponent);
    fighters_separate();
}

uint8_t match_update(void) {
    if (phase_frames < 255) phase_frames++;
    sprites_spark(0, 0, 0, 0);
    switch (match_phase) {
        case ROUND_INTRO:
            if (phase_frames == INTRO_FRAMES) {
                screen_centre(ROW_BANNER, "FIGHT!");
                sound_bell();
                enter_phase(ROUND_RUNS);
            }
            break;
        case ROUND_RUNS:
            run_round();
            break;
        case ROUND_OVER:
            run_after_round();
            if (phase_frames == ROUND_OVER_FRAMES) {
                round_number++;
                begin_round();
            }
            break;
        default:
            run_after_round();
            if (phase_frames == RESULT_FRAMES) {
                screen_centre(ROW_BANNER, fight_result == RESULT_WON ? "YOU WIN" : "YOU LOSE");
            } else if (phase_frames == PLAY_AGAIN_FRAMES) {
                screen_centre(ROW_HINT, "AGAIN? PRESS START");
            } else if (phase_frames > PLAY_AGAIN_FRAMES && buttons_pressed & BUTTON_START) {
                return 1;
            }
    }
    show_fighters();
    return 0;
}
