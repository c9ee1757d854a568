// Fighters as sprites. The poses of two fighters do not fit video memory together, so each fighter has two buffers: one is
// on the screen while the next pose is copied into the other, a few sprites in each v-blank. A fighter whose next pose is
// known (the blow after its wind-up) has it loaded ahead, and the change is immediate.
#include "sprites.h"

#include "art.h"
#include "hardware.h"

#define FIGURE_SLOTS 18
#define SPARK_SLOTS 2
#define SPARK_OAM OAM
#define PLAYER_OAM (OAM + SPARK_SLOTS * 4)
#define OPPONENT_OAM (OAM + (SPARK_SLOTS + FIGURE_SLOTS) * 4)
#define FIRST_BUFFER_TILE (256 - 8 * BUFFER_SPRITES)
#define BUFFER_TILES (2 * BUFFER_SPRITES)

#define FIGURE_HEIGHT 48
#define OAM_X 8
#define OAM_Y 16

struct puppet player_puppet, opponent_puppet;
uint8_t figure_x, figure_y, figure_tile, figure_palette, figure_slots;  // read by draw_figure
uint8_t copy_count;                                                    // read by copy_sprites

static uint8_t oam_changed, spark_frames, load_turn;

static void prepare(struct puppet *puppet) {
    puppet->pose = NO_POSE;
    puppet->held[0] = NO_POSE;
    puppet->held[1] = NO_POSE;
    puppet->spare = 0;
    puppet->loading = NO_POSE;
    puppet->left = 0;
}

void sprites_clear(void) {
    uint8_t left = 160;
    uint8_t *to = OAM;
    while (left--) *to++ = 0;
    player_puppet.figures = player_figures;
    player_puppet.pictures = player_pictures;
    player_puppet.oam = PLAYER_OAM;
    player_puppet.palette = 0x00;
    opponent_puppet.figures = opponent_figures;
    opponent_puppet.pictures = opponent_pictures;
    opponent_puppet.oam = OPPONENT_OAM;
    opponent_puppet.palette = 0x10;
    prepare(&player_puppet);
    prepare(&opponent_puppet);
    spark_frames = 0;
    oam_changed = 1;
}

uint8_t sprites_dma(void) {
    if (!oam_changed) return 0;
    oam_changed = 0;
    run_dma();
    return 1;
}

static uint8_t first_tile(const struct puppet *puppet, uint8_t buffer) {
    uint8_t tile = puppet == &player_puppet ? FIRST_BUFFER_TILE : FIRST_BUFFER_TILE + 2 * BUFFER_TILES;
    return buffer ? tile + BUFFER_TILES : tile;
}

// In v-blank. The two fighters take turns.
void sprites_load(uint8_t limit) {
    struct puppet *puppet = &player_puppet;
    if (!(player_puppet.left | opponent_puppet.left)) return;
    load_turn ^= 1;
    if (load_turn ? !player_puppet.left : opponent_puppet.left) puppet = &opponent_puppet;
    copy_count = puppet->left < limit ? puppet->left : limit;
    copy_sprites(puppet->to, puppet->from);
    puppet->left -= copy_count;
    if (puppet->left) {
        puppet->to += (uint16_t)copy_count << 5;
        puppet->from += (uint16_t)copy_count << 5;
    } else {
        puppet->held[puppet->spare] = puppet->loading;
    }
}

// A pose of `pictures` may hold one sprite twice, so its tiles can be fewer than its parts.
static void start_loading(struct puppet *puppet, uint8_t pose) {
    const uint8_t *part = puppet->figures[pose];
    uint8_t count = *part++, last = 0;
    while (count--) {
        part += 2;
        if (*part > last) last = *part;
        part++;
    }
    puppet->held[puppet->spare] = NO_POSE;
    puppet->loading = pose;
    puppet->left = (last >> 1) + 1;
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
    if (puppet->left || !puppet->pictures[next]) return;
    if (puppet->held[0] != next && puppet->held[1] != next) start_loading(puppet, next);
}

// The feet are at (x, y). Until the tiles of a new pose are there, the old pose is shown at the new place.
void sprites_pose(struct puppet *puppet, uint8_t pose, uint8_t next, uint8_t x, uint8_t y) {
    if (puppet->pose != pose) {
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
    figure_slots = FIGURE_SLOTS;
    draw_figure(puppet->oam, puppet->figures[puppet->pose]);
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
        draw_figure(SPARK_OAM, figure);
        oam_changed = 1;
    } else if (spark_frames && --spark_frames == 0) {
        OAM[0] = 0;
        OAM[4] = 0;
        oam_changed = 1;
    }
}
