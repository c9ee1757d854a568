#pragma once
#include <stdint.h>

struct puppet {
    const uint8_t *const *figures;   // how many sprites its tiles are, then what draw_figure reads
    const uint8_t *const *pictures;  // its tiles, or 0 where they always lie in video memory
    uint8_t *oam;
    uint8_t palette;
    uint8_t buffer_tile;      // first tile of the first buffer; the second follows
    uint8_t pose, x, y;       // on the screen now
    uint8_t parts;            // sprites on the screen now
    uint8_t tile;             // first tile of the pose on the screen
    uint8_t held[2];          // the poses in the two buffers
    uint8_t spare;            // the buffer that is not on the screen
    uint8_t loading, left;    // the pose that is being copied, sprites still to copy
    uint8_t waits;            // the wished pose, or the next one, is not in a buffer yet
    const uint8_t *from;
    uint8_t *to;
};

#define NO_POSE 0xFF

extern struct puppet player_puppet, opponent_puppet;

void sprites_clear(void);
void sprites_plan(void);
void sprites_pose(struct puppet *puppet, uint8_t pose, uint8_t next, uint8_t x, uint8_t y);
void sprites_spark(const uint8_t *figure, uint8_t x, uint8_t y, uint8_t frames);
