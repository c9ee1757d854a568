// Fighters as sprites. The poses of two fighters do not fit video memory together, so each fighter has two buffers: one is
// on the screen while the next pose is copied into the other, a few sprites in each v-blank. A fighter whose next pose is
// known (the blow after its wind-up) has it loaded ahead, and the change is immediate.
#include "sprites.h"

#include "art.h"
#include "hardware.h"

#define FIGURE_SLOTS 18
#define SPARK_SLOTS 2
#define PLAYER_OAM OAM
#define OPPONENT_OAM (OAM + FIGURE_SLOTS * 4)
#define SPARK_OAM (OAM + 2 * FIGURE_SLOTS * 4)  // last: where a line has more than ten sprites, the spark is what is missing
#define FIRST_BUFFER_TILE (256 - 8 * BUFFER_SPRITES)
#define BUFFER_TILES (2 * BUFFER_SPRITES)

#define SPRITE_BYTES 32
#define COPY_LIMIT 4  // sprites in one v-blank

#define FIGURE_HEIGHT 48
#define OAM_X 8
#define OAM_Y 16

struct puppet player_puppet, opponent_puppet;
uint8_t figure_x, figure_y, figure_tile, figure_palette, figure_slots;  // read by draw_figure
uint8_t oam_changed, copy_count;                                       // read by flush_video
const uint8_t *copy_from;
uint8_t *copy_to;

static uint8_t spark_frames, load_turn;

static void prepare(struct puppet *puppet) {
    puppet->pose = NO_POSE;
    puppet->held[0] = NO_POSE;
    puppet->held[1] = NO_POSE;
    puppet->spare = 0;
    puppet->loading = NO_POSE;
    puppet->left = 0;
    puppet->parts = 0;
    puppet->waits = 0;
}

void sprites_clear(void) {
    uint8_t left = 160;
    uint8_t *to = OAM;
    while (left--) *to++ = 0;
    player_puppet.figures = player_figures;
    player_puppet.pictures = player_pictures;
    player_puppet.oam = PLAYER_OAM;
    player_puppet.palette = 0x00;
    player_puppet.buffer_tile = (uint8_t)FIRST_BUFFER_TILE;
    opponent_puppet.figures = opponent_figures;
    opponent_puppet.pictures = opponent_pictures;
    opponent_puppet.oam = OPPONENT_OAM;
    opponent_puppet.palette = 0x10;
    opponent_puppet.buffer_tile = (uint8_t)(FIRST_BUFFER_TILE + 2 * BUFFER_TILES);
    prepare(&player_puppet);
    prepare(&opponent_puppet);
    spark_frames = 0;
    oam_changed = 1;
}

static uint8_t first_tile(const struct puppet *puppet, uint8_t buffer) {
    return buffer ? puppet->buffer_tile + BUFFER_TILES : puppet->buffer_tile;
}

// Chooses the tiles that the next v-blank copies. The two fighters take turns. A pose counts as held as soon as its last
// copy is planned: a figure that uses it is drawn after that v-blank at the earliest.
void sprites_plan(void) {
    struct puppet *puppet;
    if (!(player_puppet.left | opponent_puppet.left)) return;
    load_turn ^= 1;
    puppet = player_puppet.left && (load_turn || !opponent_puppet.left) ? &player_puppet : &opponent_puppet;
    copy_from = puppet->from;
    copy_to = puppet->to;
    if (puppet->left > COPY_LIMIT) {
        copy_count = COPY_LIMIT;
        puppet->left -= COPY_LIMIT;
        puppet->from += COPY_LIMIT * SPRITE_BYTES;
        puppet->to += COPY_LIMIT * SPRITE_BYTES;
    } else {
        copy_count = puppet->left;
        puppet->left = 0;
        puppet->held[puppet->spare] = puppet->loading;
    }
}

static void start_loading(struct puppet *puppet, uint8_t pose) {
    puppet->held[puppet->spare] = NO_POSE;
    puppet->loading = pose;
    puppet->left = puppet->figures[pose][0];
    puppet->from = puppet->pictures[pose];
    puppet->to = SPRITE_TILES + ((uint16_t)first_tile(puppet, puppet->spare) << 4);
}

// The pose is on the screen already, or can be: sets the tile that it starts from.
static uint8_t ready(struct puppet *puppet, uint8_t pose) {
    if (!puppet->pictures[pose]) {
        puppet->tile = 0;
        return 1;
    }
    if (puppet->held[puppet->spare] == pose) {
        puppet->tile = first_tile(puppet, puppet->spare);
        puppet->spare ^= 1;
        return 1;
    }
    if (puppet->held[puppet->spare ^ 1] == pose) {
        puppet->tile = first_tile(puppet, puppet->spare ^ 1);
        return 1;
    }
    if (puppet->loading != pose || !puppet->left) start_loading(puppet, pose);
    return 0;
}

static void foresee(struct puppet *puppet, uint8_t next) {
    if (!puppet->pictures[next] || puppet->held[0] == next || puppet->held[1] == next) return;
    puppet->waits = 1;
    if (!puppet->left) start_loading(puppet, next);
}

// The feet are at (x, y). Until the tiles of a new pose are there, the old pose is shown at the new place.
void sprites_pose(struct puppet *puppet, uint8_t pose, uint8_t next, uint8_t x, uint8_t y) {
    const uint8_t *figure;
    puppet->waits = 0;
    if (puppet->pose != pose) {
        puppet->waits = 1;  // even when it is ready now: the next pose is asked for in the next frame
        if (ready(puppet, pose)) {
            puppet->pose = pose;
        } else if (puppet->pose == NO_POSE || (puppet->x == x && puppet->y == y)) {
            return;
        }
    } else {
        if (next != pose) foresee(puppet, next);
        if (puppet->x == x && puppet->y == y) return;
    }
    puppet->x = x;
    puppet->y = y;
    figure_x = x + OAM_X;
    figure_y = y + OAM_Y - FIGURE_HEIGHT;
    figure_tile = puppet->tile;
    figure_palette = puppet->palette;
    figure = puppet->figures[puppet->pose] + 1;
    figure_slots = puppet->parts > *figure ? puppet->parts : *figure;
    puppet->parts = *figure;
    draw_figure(puppet->oam, figure);
    oam_changed = 1;
}

// Shows a spark for some frames; called every frame, with figure 0 when there is no new one.
void sprites_spark(const uint8_t *figure, uint8_t x, uint8_t y, uint8_t frames) {
    if (figure) {
        spark_frames = frames;
        figure_x = x + OAM_X;
        figure_y = y + OAM_Y;
        figure_tile = 0;
        figure_palette = 0x00;
        figure_slots = SPARK_SLOTS;
        draw_figure(SPARK_OAM, figure + 1);
        oam_changed = 1;
    } else if (spark_frames && --spark_frames == 0) {
        SPARK_OAM[0] = 0;
        SPARK_OAM[4] = 0;
        oam_changed = 1;
    }
}
