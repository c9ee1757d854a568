// The rules: a sign is shown, the road is walked, a gate is chosen.
//
// The courier obeys in every fourth frame, and then takes a whole step or none. So where he stands says how many steps he
// has taken, and nothing else: no player can keep the sign in it, by a pause or a detour.
#include "play.h"

#include "art.h"
#include "effects.h"
#include "hardware.h"
#include "input.h"
#include "random.h"
#include "road.h"
#include "video.h"

#define OPEN_FRAME 32  // a multiple of four
#define STEP_MASK 3
#define PIXELS_A_FRAME 2
#define FEET_Y 114
#define SIGN_X 40
#define SIGN_Y 32
#define GATE_X 80      // of the courier in front of a gate
#define UPPER_Y 55
#define LOWER_Y 118
#define SLOT_COURIER 0
#define COURIER_SLOTS 2
#define SLOT_SIGN 2
#define SIGN_SLOTS 8
#define BAR_TILES 16

uint8_t sign, sign_seen, at_fork, chosen, result, frames, scroll;
uint16_t steps, left;
static uint8_t is_walking, walk_x, walk_y, bar_tiles, row[COLUMNS];
static uint16_t bar_sum, bar_total;

// (y, x, tile) of each sprite, for draw_figure.
static const uint8_t courier_pieces[] = {2, 0, 0, 0, 0, 8, 2};
static const uint8_t sign_pieces[] = {8, 0, 0, 0, 0, 8, 2, 0, 16, 4, 0, 24, 6, 16, 0, 8, 16, 8, 10, 16, 16, 12, 16, 24, 14};

static void show_courier(uint8_t x, uint8_t feet_y, uint8_t steps_out) {
    uint8_t tile = steps_out ? FIGURE_COURIER_STEP : FIGURE_COURIER;
    video_figure(SLOT_COURIER, x, feet_y - 16, tile, courier_pieces, COURIER_SLOTS);
}

static void show_sign(void) {
    uint8_t tile = sign == SIGN_SUN ? FIGURE_SUN : FIGURE_MOON;
    video_figure(SLOT_SIGN, SIGN_X - scroll, SIGN_Y, tile, sign_pieces, SIGN_SLOTS);
}

static void show_bar(void) {
    uint8_t i;
    for (i = 0; i < COLUMNS; i++) row[i] = text_empty[0];
    for (i = 0; i < BAR_TILES; i++) row[2 + i] = i < bar_tiles ? TILE_BAR_FULL : TILE_BAR;
    video_row(row);
}

static void open_window(void) {
    sign = sign_seen = random() & 1 ? SIGN_SUN : SIGN_MOON;
    scenery = random() & 15;
    sound_open();
    show_sign();
}

static void begin_step(void) {
    is_walking = 1;
    road_prepare(FIRST_COLUMN + steps + 1);
}

static void end_step(void) {
    is_walking = 0;
    steps++;
    left--;
    if (steps < LAST_SIGHT - FIRST_COLUMN) return;
    if (steps > LAST_SIGHT - FIRST_COLUMN && sign_seen) {
        sign_seen = 0;
        video_hide(SLOT_SIGN, SIGN_SLOTS);
    }
    bar_sum += BAR_TILES;
    while (bar_sum >= bar_total) {
        bar_sum -= bar_total;
        bar_tiles++;
    }
    if (left == 0) {
        at_fork = 1;
        video_row(text_fork);
    } else {
        show_bar();
    }
}

static void choose(uint8_t gate) {
    chosen = gate;
    result = chosen == sign ? RESULT_WON : RESULT_LOST;
    walk_x = COURIER_SCREEN_X;
    walk_y = FEET_Y;
    if (result == RESULT_WON) {
        sound_home();
        video_row(text_won);
    } else {
        sound_wrong();
        video_row(text_lost);
    }
}

static void obey(void) {
    if (at_fork) {
        if (buttons & BUTTON_UP) {
            choose(SIGN_SUN);
        } else if (buttons & BUTTON_DOWN) {
            choose(SIGN_MOON);
        }
    } else if (buttons & BUTTON_RIGHT) {
        begin_step();
    }
}

static void walk_to_the_gate(void) {
    uint8_t goal = chosen == SIGN_SUN ? UPPER_Y : LOWER_Y;
    if (walk_x < GATE_X) walk_x++;
    if (walk_y < goal) walk_y++;
    if (walk_y > goal) walk_y -= 2;
    if (walk_y + 1 == goal) walk_y = goal;
    show_courier(walk_x, walk_y, walk_x < GATE_X && frames & 4);
}

void play_begin(void) {
    sign = sign_seen = at_fork = chosen = 0;
    result = RESULT_NONE;
    steps = 0;
    frames = scroll = is_walking = 0;
    bar_sum = bar_tiles = 0;
    video_off();
    video_load(background_tiles, background_tiles_size);
    road_load();
    left = fork - FIRST_COLUMN;
    bar_total = fork - LAST_SIGHT;
    video_show_road(road);
    video_row(text_read);
    show_courier(COURIER_SCREEN_X, FEET_Y, 0);
}

uint8_t play_update(void) {
    frames++;
    if (result != RESULT_NONE) {
        walk_to_the_gate();
        return (buttons_pressed & BUTTON_START) != 0;
    }
    if (sign == 0) {
        if (frames == OPEN_FRAME) open_window();
        return 0;
    }
    if ((frames & STEP_MASK) == 0) obey();
    if (!is_walking) return 0;
    scroll += PIXELS_A_FRAME;
    if ((frames & STEP_MASK) == STEP_MASK) end_step();
    show_courier(COURIER_SCREEN_X, FEET_Y, is_walking && steps & 1);
    if (sign_seen) show_sign();
    return 0;
}
