#pragma once

#include <stdint.h>

void sound_init(void);
void noise(uint8_t envelope, uint8_t pitch);                             // NR42, NR43
void tone(uint8_t sweep, uint8_t envelope, uint8_t low, uint8_t high);  // NR10, NR12, NR13, NR14
