#pragma once

void sound_key(void);
void sound_heart(void);
void sound_door(void);
void sound_hurt(void);
void sound_lantern(void);
void sound_spikes(void);
void sound_finish(void);
