// The rules: apples, creatures, brambles, pits, the flag.
#include "play.h"

#include "art.h"
#include "creatures.h"
#include "hardware.h"
#include "input.h"
#include "level.h"
#include "runner.h"
#include "effects.h"
#include "video.h"

#define MOST_LIVES 3
#define HURT_FRAMES 90
#define FALL_FRAMES 24
#define START_X 24
#define START_Y 112
#define FLAG_FROM_END 3  // columns; the build checks it
#define GROUND_Y 120
#define SKY_Y 20
#define LOST_BELOW 150  // pixels; the row at the bottom hides what falls
#define STOMP_BOUNCE (-44)
#define BRAMBLE_BOUNCE (-62)
#define PUFF_MOVES 10

#define SLOT_FOX 0
#define SLOT_CREATURES 1

uint8_t lives, apples, stomps, progress, result, hurt_frames;
static uint8_t fall_frames, frames;
static uint16_t flag_x;

// --- the row at the bottom ---

static void draw_hud(void) {
    uint8_t i, tens = 0, ones = apples;
    for (i = 0; i < COLUMNS; i++) hud[i] = TILE_BLANK;
    for (i = 0; i < MOST_LIVES; i++) hud[1 + i] = i < lives ? TILE_HEART : TILE_NO_HEART;
    while (ones > 9) {
        ones -= 10;
        tens++;
    }
    hud[15] = TILE_APPLE;
    hud[17] = TILE_0 + tens;
    hud[18] = TILE_0 + ones;
    hud_changed = 1;
}

// --- sprites ---

static void show_fox(void) {
    uint8_t tile = FIGURE_FOX;
    if (runner_y > LEVEL_HEIGHT + 4 || runner_y < 4 || hurt_frames & 4) {
        video_hide(SLOT_FOX);
        return;
    }
    if (!on_ground) {
        tile = FIGURE_FOX_JUMP;
    } else if (runner_walks && frames & 4) {
        tile = FIGURE_FOX_STEP;
    }
    video_sprite(SLOT_FOX, runner_x - camera, runner_y - 8, tile, faces_left ? MIRRORED : 0);
}

static void show_creature(uint8_t i) {
    const struct creature *one = &creatures[i];
    uint16_t x = one->x - camera;
    uint8_t tile, palette = one->kind;
    if (one->kind == NOTHING || (x > 176 && x < 0xFFF8)) {
        video_hide(SLOT_CREATURES + i);
        return;
    }
    if (one->kind == PUFF) {
        tile = FIGURE_PUFF;
        palette = 2;
    } else {
        tile = one->kind == SNAIL ? FIGURE_SNAIL : FIGURE_BEE;
        if (one->steps & 4) tile += 4;
    }
    if (one->dx < 0) palette |= MIRRORED;
    video_sprite(SLOT_CREATURES + i, x, one->y, tile, palette);
}

// --- rules ---

static void end(uint8_t how, const char *text) {
    result = how;
    video_text(text);
}

static void hurt(void) {
    if (hurt_frames) return;
    lives--;
    hurt_frames = HURT_FRAMES;
    sound_hurt();
    draw_hud();
    if (lives == 0) end(RESULT_LOST, "OH NO! PRESS START");
}

static void meet_creature(void) {
    struct creature *other = creatures_touching(runner_x, runner_y - 8);
    if (!other) return;
    if (!on_ground && runner_speed > 0 && runner_y - 2 < other->y) {
        other->kind = PUFF;
        other->timer = PUFF_MOVES;
        stomps++;
        sound_stomp();
        runner_bounce(STOMP_BOUNCE);
    } else {
        hurt();
    }
}

static void meet_cell(void) {
    if (level_kind(runner_x, runner_y - 7) == KIND_APPLE) {
        level_take(runner_x, runner_y - 7);
        apples++;
        sound_apple();
        draw_hud();
    }
    if (runner_x >= flag_x) {
        sound_finish();
        end(RESULT_WON, "HURRAY! PRESS START");
        return;
    }
    if (level_kind(runner_x, runner_y - 1) == KIND_BRAMBLE && runner_speed >= 0) {
        hurt();
        runner_bounce(BRAMBLE_BOUNCE);
    }
}

static void fall_out(void) {
    hurt_frames = 0;
    hurt();
    fall_frames = FALL_FRAMES;
}

// Drops the fox from the sky near the left edge, where there is ground.
static void come_back(void) {
    uint16_t x = camera + 16;
    while (!(level_kind(x - 6, GROUND_Y) & level_kind(x + 6, GROUND_Y) & KIND_SOLID)) x += 4;
    runner_place(x, SKY_Y);
}

static void note_progress(void) {
    uint8_t place = (uint8_t)(runner_x >> 3);
    if (place > progress) progress = place;
}

void play_begin(void) {
    lives = MOST_LIVES;
    apples = stomps = 0;
    result = RESULT_NONE;
    hurt_frames = fall_frames = 0;
    faces_left = 0;
    video_off();
    video_palettes(level - 1);
    video_load(background_tiles, background_tiles_size);
    level_load();
    flag_x = (uint16_t)(columns - FLAG_FROM_END) << 4;
    runner_place(START_X, START_Y);
    progress = START_X >> 3;
    draw_hud();
    video_show_level();
}

static void play_frame(void) {
    runner_move();
    note_progress();
    level_follow(runner_x);
    meet_cell();
    meet_creature();
    if (runner_y > LOST_BELOW) fall_out();
}

uint8_t play_update(void) {
    frames++;
    if (result != RESULT_NONE) return (buttons_pressed & BUTTON_START) != 0;
    if (hurt_frames) hurt_frames--;
    creatures_update();
    if (fall_frames) {
        if (--fall_frames == 0) come_back();
    } else {
        play_frame();
    }
    show_fox();
    show_creature(0);
    show_creature(1);
    show_creature(2);
    return 0;
}
