// How the keeper walks: three pixels in two frames, around corners by itself.
#include "player.h"

#include "input.h"
#include "room.h"

#define HALF_WIDTH 5  // the feet are 11 x 8 pixels
#define ABOVE 3
#define BELOW 4

#define EXIT_LEFT 6
#define EXIT_RIGHT 153
#define EXIT_UP 20
#define EXIT_DOWN 139

uint8_t player_x, player_y, facing, player_walks, bumped;
static uint8_t half_step;

static uint8_t is_free(uint8_t x, uint8_t y) {
    uint8_t left = x - HALF_WIDTH, right = x + HALF_WIDTH, top = y - ABOVE, bottom = y + BELOW;
    return !((CELL_AT(left, top) | CELL_AT(right, top) | CELL_AT(left, bottom) | CELL_AT(right, bottom)) & KIND_SOLID);
}

// One pixel up or down. Whoever hits a corner with one foot slides around it.
static void step_vertically(uint8_t down) {
    uint8_t ahead = down ? player_y + BELOW + 1 : player_y - ABOVE - 1;
    uint8_t left = CELL_AT(player_x - HALF_WIDTH, ahead), right = CELL_AT(player_x + HALF_WIDTH, ahead);
    if (!((left | right) & KIND_SOLID)) {
        if (down) {
            player_y++;
        } else {
            player_y--;
        }
        return;
    }
    bumped = left & KIND_SOLID ? left : right;
    if (!(left & KIND_SOLID) && is_free(player_x - 1, player_y)) {
        player_x--;
    } else if (!(right & KIND_SOLID) && is_free(player_x + 1, player_y)) {
        player_x++;
    }
}

static void step_sideways(uint8_t to_right) {
    uint8_t ahead = to_right ? player_x + HALF_WIDTH + 1 : player_x - HALF_WIDTH - 1;
    uint8_t top = CELL_AT(ahead, player_y - ABOVE), bottom = CELL_AT(ahead, player_y + BELOW);
    if (!((top | bottom) & KIND_SOLID)) {
        if (to_right) {
            player_x++;
        } else {
            player_x--;
        }
        return;
    }
    bumped = top & KIND_SOLID ? top : bottom;
    if (!(top & KIND_SOLID) && is_free(player_x, player_y - 1)) {
        player_y--;
    } else if (!(bottom & KIND_SOLID) && is_free(player_x, player_y + 1)) {
        player_y++;
    }
}

static uint8_t step(void) {
    switch (facing) {
        case LEFT:
            if (player_x <= EXIT_LEFT) return 1 + LEFT;
            step_sideways(0);
            break;
        case RIGHT:
            if (player_x >= EXIT_RIGHT) return 1 + RIGHT;
            step_sideways(1);
            break;
        case UP:
            if (player_y <= EXIT_UP) return 1 + UP;
            step_vertically(0);
            break;
        default:
            if (player_y >= EXIT_DOWN) return 1 + DOWN;
            step_vertically(1);
    }
    return 0;
}

uint8_t player_move(void) {
    uint8_t left;
    bumped = 0;
    player_walks = 1;
    if (buttons & BUTTON_LEFT) {
        facing = LEFT;
    } else if (buttons & BUTTON_RIGHT) {
        facing = RIGHT;
    } else if (buttons & BUTTON_UP) {
        facing = UP;
    } else if (buttons & BUTTON_DOWN) {
        facing = DOWN;
    } else {
        player_walks = 0;
        return 0;
    }
    left = step();
    if (left) return left;
    half_step ^= 1;
    return half_step ? step() : 0;
}
