#pragma once

void sound_swing(void);
void sound_hit(void);
void sound_guard(void);
void sound_knock_out(void);
void sound_bell(void);
