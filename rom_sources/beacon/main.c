// Beacon: title, choice of the part, play, result, and round again.
#include <stdint.h>

#include "art.h"
#include "hardware.h"
#include "input.h"
#include "play.h"
#include "random.h"
#include "room.h"
#include "sound.h"
#include "video.h"

#define ROW_HINT 16

enum scene { TITLE, SELECT, PLAY, RESULT };

uint8_t scene, chosen_part;

static const char *const part_lines[PARTS] = {"> PART 1 SHORE", "> PART 2 CAVES", "> PART 3 LIGHTHOUSE"};

static void show_title(uint8_t next, const uint8_t *map, const char *hint) {
    scene = next;
    video_load(title_tiles, title_tiles_size);
    video_show(map);
    video_centre(ROW_HINT, hint);
}

static void show_title_or_result(void) {
    switch (result) {
        case RESULT_WON:
            show_title(RESULT, lit_title, "THE BEACON SHINES!");
            break;
        case RESULT_LOST:
            show_title(RESULT, dark_title, "THE NIGHT IS LONG...");
            break;
        default:
            show_title(TITLE, dark_title, "PRESS START");
    }
}

static void begin_play(void) {
    rng_seed ^= (uint16_t)DIV << 8;  // the moment of the press is all the chance that the console has
    scene = PLAY;
    video_load(background_tiles, background_tiles_size);
    video_show(0);
    play_begin(chosen_part);
}

static void run_select(void) {
    if (buttons_pressed & (BUTTON_START | BUTTON_A)) {
        begin_play();
        return;
    }
    if (buttons_pressed & (BUTTON_RIGHT | BUTTON_DOWN)) {
        chosen_part = chosen_part == PARTS ? 1 : chosen_part + 1;
    } else if (buttons_pressed & (BUTTON_LEFT | BUTTON_UP)) {
        chosen_part = chosen_part == 1 ? PARTS : chosen_part - 1;
    } else {
        return;
    }
    video_centre(ROW_HINT, part_lines[chosen_part - 1]);
}

static void run_title(void) {
    if (!(buttons_pressed & (BUTTON_START | BUTTON_A))) return;
    rng_seed += DIV;
    scene = SELECT;
    video_centre(ROW_HINT, part_lines[chosen_part - 1]);
}

static void run_result(void) {
    if (!(buttons_pressed & BUTTON_START)) return;
    result = RESULT_NONE;
    show_title_or_result();
}

void main(void) {
    chosen_part = 1;
    sound_init();
    video_load_sprites();
    show_title_or_result();
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
            case PLAY:
                if (play_update()) show_title_or_result();
                break;
            default:
                run_result();
        }
        video_plan();
    }
}
