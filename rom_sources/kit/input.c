#include "input.h"

#include "hardware.h"

uint8_t buttons, buttons_pressed;

void input_read(void) {
    uint8_t before = buttons, directions, others;
    P1 = 0x20;
    directions = P1;
    directions = P1;  // the lines need a moment to settle
    P1 = 0x10;
    others = P1;
    others = P1;
    P1 = 0x30;
    others = ~others & 0x0F;
    buttons = (uint8_t)(others << 4) | (~directions & 0x0F);
    buttons_pressed = buttons & ~before;
}
