#include "effects.h"

#include "sound.h"

void sound_open(void) { noise(0x92, 0x46); }
void sound_step(void) { noise(0x41, 0x70); }
void sound_home(void) { tone(0x27, 0xF7, 0x00, 0x06); }
void sound_wrong(void) { tone(0x2D, 0xF3, 0x80, 0x06); }
