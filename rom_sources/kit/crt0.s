; Start-up, and the few routines where a cycle or a byte of HRAM counts. No interrupt is ever enabled: the main loop
; halts until the v-blank flag rises (HALT wakes with IME = 0), which costs an emulator next to nothing.

        .module crt0
        .globl _main
        .globl _figure_x, _figure_y, _figure_tile, _figure_palette, _figure_slots
        .globl _oam_changed, _row_from, _row_to, _copy_count, _copy_from, _copy_to

IF      = 0x0F
DMA     = 0x46
IE      = 0xFF
DMA_RUN = 0xFF80        ; the DMA routine runs from HRAM: nothing else is readable while OAM is filled

        .macro  .copy4
        ld a, (hl+)
        ld (de), a
        inc e
        ld a, (hl+)
        ld (de), a
        inc e
        ld a, (hl+)
        ld (de), a
        inc e
        ld a, (hl+)
        ld (de), a
        inc e
        .endm

        .macro  .copy8
        .copy4
        .copy4
        .endm

        .area _HEADER (ABS)
        .org 0x0100
        nop
        jp start
        ; 0x0104-0x014F is filled by make_rom.py: no logo, the title, the checksums.

        .org 0x0150
start:
        di
        ld sp, #0xE000
        ld hl, #0xC000          ; work RAM starts at zero on every console
        ld bc, #0x2000
clear:  xor a
        ld (hl+), a
        dec bc
        ld a, b
        or c
        jr nz, clear
        ld hl, #dma_code
        ld c, #<DMA_RUN
        ld b, #dma_end - dma_code
copy:   ld a, (hl+)
        ldh (c), a
        inc c
        dec b
        jr nz, copy
        ld a, #1
        ldh (IE), a             ; v-blank may end HALT
        jp _main

dma_code:
        ld a, #0xC0             ; OAM image at 0xC000
        ldh (DMA), a
        ld a, #40
dma_wait:
        dec a
        jr nz, dma_wait
        ret
dma_end:

; void wait_vblank(void): returns in the first cycles of v-blank. An old flag is dropped first, so that a frame that
; took too long costs a frame and never a write to video memory in the middle of the picture.
_wait_vblank::
        xor a
        ldh (IF), a
sleep:  halt
        nop
        ldh a, (IF)
        rrca
        jr nc, sleep
        ret

; void run_dma(void)
_run_dma::
        jp DMA_RUN

; void flush_video(void): everything that the picture of the next frame needs, in v-blank: the DMA if the OAM image has
; changed (170 cycles), one row of the background (130) and up to four sprites' tiles (170 each). That is 1,000 of the 1,140
; cycles of v-blank, so all choosing is done before, by screen_plan.
_flush_video::
        ld hl, #_oam_changed
        ld a, (hl)
        ld (hl), #0
        or a
        call nz, DMA_RUN
        ld hl, #_row_from
        ld a, (hl+)
        ld h, (hl)
        ld l, a
        or h
        call nz, copy_row
        ld hl, #_copy_count
        ld a, (hl)
        ld (hl), #0
        or a
        ret z
        ld b, a
        ld hl, #_copy_to
        ld a, (hl+)
        ld d, (hl)
        ld e, a
        ld hl, #_copy_from
        ld a, (hl+)
        ld h, (hl)
        ld l, a
sprite: .copy8
        .copy8
        .copy8
        .copy8                  ; a sprite starts on a multiple of 32: E can only have run over here
        jr nz, same_page
        inc d
same_page:
        dec b
        jp nz, sprite
        ret

; The 20 bytes at HL to the row of the screen at row_to.
copy_row:
        ld a, (_row_to)
        ld e, a
        ld a, (_row_to + 1)
        ld d, a
        .copy8
        .copy8
        .copy4
        xor a
        ld (_row_from), a
        ld (_row_from + 1), a
        ret

; void draw_figure(uint8_t *oam, const uint8_t *figure): count, then (y, x, tile) for each sprite; adds figure_y,
; figure_x, figure_tile and figure_palette. Afterwards hides the sprites up to figure_slots.
_draw_figure::
        ld h, b
        ld l, c
        ld a, (hl+)
        ld b, a                 ; sprites to draw
        ld a, (_figure_slots)
        sub b
        ld c, a                 ; sprites to hide
        inc b
        jr drawn
draw:   ld a, (_figure_y)
        add a, (hl)
        inc hl
        ld (de), a
        inc e
        ld a, (_figure_x)
        add a, (hl)
        inc hl
        ld (de), a
        inc e
        ld a, (_figure_tile)
        add a, (hl)
        inc hl
        ld (de), a
        inc e
        ld a, (_figure_palette)
        ld (de), a
        inc e
drawn:  dec b
        jr nz, draw
        inc c
        jr hidden
hide:   xor a
        ld (de), a
        ld a, e
        add a, #4
        ld e, a
hidden: dec c
        jr nz, hide
        ret

        .area _CODE
        .area _DATA
