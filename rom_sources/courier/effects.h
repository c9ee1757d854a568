#pragma once

void sound_open(void);
void sound_step(void);
void sound_home(void);
void sound_wrong(void);
