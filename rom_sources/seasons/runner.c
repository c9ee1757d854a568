// How the fox runs and jumps: three pixels in two frames; higher while the button is held.
#include "runner.h"

#include "input.h"
#include "level.h"
#include "effects.h"

#define JUMP_SPEED (-62)
#define GRAVITY 6
#define GRAVITY_HELD 3
#define FASTEST_FALL 62
#define HALF_WIDTH 5
#define FOOT 4
#define HEIGHT 14

uint16_t runner_x;
int16_t runner_y;
int8_t runner_speed;
uint8_t on_ground, faces_left, runner_walks;
static uint8_t half_step, fraction;

void runner_place(uint16_t x, int16_t y) {
    runner_x = x;
    runner_y = y;
    runner_speed = 0;
    fraction = 0;
    on_ground = 0;
}

void runner_bounce(int8_t speed) {
    runner_speed = speed;
    fraction = 0;
    on_ground = 0;
}

static void step(void) {
    uint16_t ahead;
    if (faces_left) {
        if (runner_x <= camera + 8) return;
        ahead = runner_x - HALF_WIDTH - 1;
    } else {
        if (runner_x >= camera + 151) return;
        ahead = runner_x + HALF_WIDTH + 1;
    }
    if ((level_kind(ahead, runner_y - 2) | level_kind(ahead, runner_y - HEIGHT + 2)) & KIND_SOLID) return;
    if (faces_left) {
        runner_x--;
    } else {
        runner_x++;
    }
}

static void walk(void) {
    runner_walks = (buttons & (BUTTON_LEFT | BUTTON_RIGHT)) != 0;
    if (!runner_walks) return;
    faces_left = (buttons & BUTTON_LEFT) != 0;
    step();
    half_step ^= 1;
    if (half_step) step();
}

static uint8_t is_solid_at(int16_t y) {
    return (level_kind(runner_x - FOOT, y) | level_kind(runner_x + FOOT, y)) & KIND_SOLID;
}

// Speed in 1/16 of a pixel; the fraction is kept from frame to frame.
static void fall(void) {
    int16_t moved = (int16_t)runner_speed + fraction;
    runner_y += moved >> 4;
    fraction = moved & 15;
    if (runner_speed < 0) {
        if (is_solid_at(runner_y - HEIGHT)) {
            runner_y = ((runner_y - HEIGHT) & 0xFFF0) + 16 + HEIGHT;
            runner_speed = 0;
        }
    } else if (is_solid_at(runner_y)) {
        runner_y &= 0xFFF0;
        runner_speed = 0;
        fraction = 0;
        on_ground = 1;
    }
    runner_speed += buttons & BUTTON_A && runner_speed < 0 ? GRAVITY_HELD : GRAVITY;
    if (runner_speed > FASTEST_FALL) runner_speed = FASTEST_FALL;
}

void runner_move(void) {
    walk();
    if (on_ground) {
        if (!is_solid_at(runner_y)) {
            on_ground = 0;
            runner_speed = 0;
        } else if (buttons & BUTTON_A) {
            on_ground = 0;
            runner_speed = JUMP_SPEED;
            sound_jump();
        }
    }
    if (!on_ground) fall();
}
