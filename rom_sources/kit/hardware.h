// The registers of the console that the game uses, and the routines of crt0.s.
#pragma once
#include <stdint.h>

#define REGISTER(address) (*(volatile uint8_t *)(address))
#define P1 REGISTER(0xFF00)
#define DIV REGISTER(0xFF04)
#define NR10 REGISTER(0xFF10)
#define NR11 REGISTER(0xFF11)
#define NR12 REGISTER(0xFF12)
#define NR13 REGISTER(0xFF13)
#define NR14 REGISTER(0xFF14)
#define NR41 REGISTER(0xFF20)
#define NR42 REGISTER(0xFF21)
#define NR43 REGISTER(0xFF22)
#define NR44 REGISTER(0xFF23)
#define NR50 REGISTER(0xFF24)
#define NR51 REGISTER(0xFF25)
#define NR52 REGISTER(0xFF26)
#define LCDC REGISTER(0xFF40)
#define SCY REGISTER(0xFF42)
#define SCX REGISTER(0xFF43)
#define BGP REGISTER(0xFF47)
#define OBP0 REGISTER(0xFF48)
#define OBP1 REGISTER(0xFF49)

// Of the Game Boy Color alone.
#define VBK REGISTER(0xFF4F)   // the bank of video memory: 1 has the palette of each cell of the maps
#define BCPS REGISTER(0xFF68)  // a palette's byte, with bit 7: and go on to the next
#define BCPD REGISTER(0xFF69)
#define OCPS REGISTER(0xFF6A)
#define OCPD REGISTER(0xFF6B)

#define WY REGISTER(0xFF4A)
#define WX REGISTER(0xFF4B)

#define LCD_OFF 0x00
#define LCD_ENABLED 0x80
#define LCD_ON 0x87  // screen, 8x16 sprites, background; its tiles at 0x9000, its map at 0x9800

#define OAM ((uint8_t *)0xC000)  // the image that DMA copies
#define SPRITE_TILES ((uint8_t *)0x8000)
#define BACKGROUND_TILES ((uint8_t *)0x9000)
#define BACKGROUND_MAP ((uint8_t *)0x9800)

#define LCD_WINDOW 0x60  // with LCD_ON: the window, its map at 0x9C00
#define WINDOW_MAP ((uint8_t *)0x9C00)

void wait_vblank(void);
void run_dma(void);
void flush_video(void);
void draw_figure(uint8_t *oam, const uint8_t *figure);
