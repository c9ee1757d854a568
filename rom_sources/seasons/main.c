// Seasons: title, choice of the level, level after level.
#include <stdint.h>

#include "art.h"
#include "hardware.h"
#include "input.h"
#include "level.h"
#include "play.h"
#include "random.h"
#include "sound.h"
#include "video.h"

enum scene { TITLE, SELECT, PLAY };

uint8_t scene;

static const char *const level_lines[LEVELS] = {"> 1 SPRING", "> 2 SUMMER", "> 3 AUTUMN", "> 4 WINTER"};

static void show_title(void) {
    scene = TITLE;
    video_off();
    video_palettes(level - 1);
    video_load(title_tiles, title_tiles_size);
    video_show_title(title_map);
    video_text("PRESS START");
}

static void run_title(void) {
    if (!(buttons_pressed & (BUTTON_START | BUTTON_A))) return;
    rng_seed += DIV;  // the moment of the press is all the chance that the console has
    scene = SELECT;
    video_text(level_lines[level - 1]);
}

static void run_select(void) {
    if (buttons_pressed & (BUTTON_START | BUTTON_A)) {
        rng_seed ^= (uint16_t)DIV << 8;
        scene = PLAY;
        play_begin();
        return;
    }
    if (buttons_pressed & (BUTTON_RIGHT | BUTTON_DOWN)) {
        level = level == LEVELS ? 1 : level + 1;
    } else if (buttons_pressed & (BUTTON_LEFT | BUTTON_UP)) {
        level = level == 1 ? LEVELS : level - 1;
    } else {
        return;
    }
    video_text(level_lines[level - 1]);
}

static void run_play(void) {
    if (!play_update()) return;
    if (result == RESULT_WON) level = level == LEVELS ? 1 : level + 1;
    if (result == RESULT_WON && level == 1) {
        result = RESULT_NONE;
        show_title();
    } else {
        play_begin();
    }
}

void main(void) {
    level = 1;
    sound_init();
    video_off();
    SCY = 0;
    video_load_sprites();
    show_title();
    for (;;) {
        wait_vblank();
        SCX = scene == PLAY ? (uint8_t)camera : 0;
        flush_video();
        flush_column();
        input_read();
        switch (scene) {
            case TITLE:
                run_title();
                break;
            case SELECT:
                run_select();
                break;
            default:
                run_play();
                level_plan();
        }
        video_plan();
    }
}
