#pragma once

void sound_jump(void);
void sound_apple(void);
void sound_stomp(void);
void sound_hurt(void);
void sound_finish(void);
