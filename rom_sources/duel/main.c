// Duel: title, choice of the level, fight, and round again.
#include <stdint.h>

#include "art.h"
#include "hardware.h"
#include "input.h"
#include "fighter.h"
#include "match.h"
#include "opponent.h"
#include "random.h"
#include "screen.h"
#include "sound.h"
#include "sprites.h"

enum scene { TITLE, SELECT, FIGHT };

uint8_t scene;
static uint8_t scene_frames;

static const char *const level_lines[LEVELS] = {"> LEVEL 1 PAWN", "> LEVEL 2 ROOK", "> LEVEL 3 KING"};

static void begin_scene(uint8_t next) {
    scene = next;
    scene_frames = 0;
    if (next == FIGHT) {
        match_begin();
        return;
    }
    screen_show(title_map);
    if (next == SELECT) {
        screen_centre(ROW_HINT, level_lines[level - 1]);
    } else {
        screen_centre(ROW_HINT, "PRESS START");
    }
}

static void run_title(void) {
    if (buttons_pressed & (BUTTON_START | BUTTON_A)) {
        rng_seed += DIV;  // the moment of the press is all the chance that the console has
        begin_scene(SELECT);
        return;
    }
    scene_frames++;
    sprites_pose(&player_puppet, POSE_STAND, POSE_STAND, 52, FLOOR_Y);
    sprites_pose(&opponent_puppet, scene_frames & 64 ? POSE_PUNCH_WINDUP : POSE_STAND, POSE_STAND, 108, FLOOR_Y);
}

static void run_select(void) {
    if (buttons_pressed & (BUTTON_START | BUTTON_A)) {
        rng_seed ^= (uint16_t)DIV << 8;
        begin_scene(FIGHT);
        return;
    }
    if (buttons_pressed & (BUTTON_RIGHT | BUTTON_DOWN)) {
        level = level == LEVELS ? 1 : level + 1;
    } else if (buttons_pressed & (BUTTON_LEFT | BUTTON_UP)) {
        level = level == 1 ? LEVELS : level - 1;
    } else if (scene_frames) {
        return;
    }
    scene_frames = 1;
    screen_centre(ROW_HINT, level_lines[level - 1]);
    sprites_pose(&player_puppet, POSE_STAND, POSE_STAND, 52, FLOOR_Y);
    sprites_pose(&opponent_puppet, POSE_STAND, POSE_STAND, 108, FLOOR_Y);
}

void main(void) {
    level = 1;
    sound_init();
    screen_load();
    begin_scene(TITLE);
    for (;;) {
        wait_vblank();
        flush_video();
        input_read();
        switch (scene) {
            case TITLE:
                run_title();
                break;
            case SELECT:
                run_select();
                break;
            default:
                if (match_update()) begin_scene(SELECT);
        }
        screen_plan();
    }
}
