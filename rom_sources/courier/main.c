// Courier: title, choice of the road, the way.
#include <stdint.h>

#include "art.h"
#include "frame.h"
#include "hardware.h"
#include "input.h"
#include "play.h"
#include "random.h"
#include "road.h"
#include "sound.h"
#include "video.h"

enum scene { TITLE, SELECT, PLAY };

uint8_t scene;

static const uint8_t *const road_lines[ROADS] = {text_lane, text_road, text_valley, text_pass};

static void show_title(void) {
    scene = TITLE;
    result = RESULT_NONE;
    video_off();
    video_load(title_tiles, title_tiles_size);
    video_show_title(title_map);
    video_row(text_start);
}

static void run_title(void) {
    if (!(buttons_pressed & (BUTTON_START | BUTTON_A))) return;
    rng_seed += DIV;  // the moment of the press is all the chance that the console has
    scene = SELECT;
    video_row(road_lines[road - 1]);
}

static void run_select(void) {
    if (buttons_pressed & (BUTTON_START | BUTTON_A)) {
        rng_seed ^= (uint16_t)DIV << 8;
        scene = PLAY;
        play_begin();
        return;
    }
    if (buttons_pressed & (BUTTON_RIGHT | BUTTON_DOWN)) {
        road = road == ROADS ? 1 : road + 1;
    } else if (buttons_pressed & (BUTTON_LEFT | BUTTON_UP)) {
        road = road == 1 ? ROADS : road - 1;
    } else {
        return;
    }
    video_row(road_lines[road - 1]);
}

void main(void) {
    road = 2;
    sound_init();
    video_off();
    video_load_sprites();
    show_title();
    for (;;) {
        wait_vblank();
        SCX = scene == PLAY ? scroll : 0;
        flush_video();
        road_flush();
        input_read();
        switch (scene) {
            case TITLE:
                run_title();
                break;
            case SELECT:
                run_select();
                break;
            default:
                if (play_update()) show_title();
        }
    }
}
