#pragma once
#include <stdint.h>

#define BUTTON_RIGHT 0x01
#define BUTTON_LEFT 0x02
#define BUTTON_UP 0x04
#define BUTTON_DOWN 0x08
#define BUTTON_A 0x10
#define BUTTON_B 0x20
#define BUTTON_SELECT 0x40
#define BUTTON_START 0x80

extern uint8_t buttons;          // held now
extern uint8_t buttons_pressed;  // held now and not a frame ago

void input_read(void);
