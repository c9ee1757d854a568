// One-shot effects: the console's own envelopes and sweep do the rest, so a sound costs five writes and no driver.
#include "sound.h"

#include "hardware.h"

void sound_init(void) {
    NR52 = 0x80;
    NR51 = 0xFF;
    NR50 = 0x55;
}

void noise(uint8_t envelope, uint8_t pitch) {
    NR41 = 0x00;
    NR42 = envelope;
    NR43 = pitch;
    NR44 = 0x80;
}

void tone(uint8_t sweep, uint8_t envelope, uint8_t low, uint8_t high) {
    NR10 = sweep;
    NR11 = 0x80;
    NR12 = envelope;
    NR13 = low;
    NR14 = 0x80 | high;
}
