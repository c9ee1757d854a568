; One column of the background, tiles and palettes, in v-blank.

        .module column
        .globl _column_waits, _column_tiles, _column_palettes, _column_to

VBK     = 0x4F

        .area _CODE

; void flush_column(void): 16 bytes in each of both banks of video memory, 520 cycles. The DMA and a row fit beside it.
_flush_column::
        ld hl, #_column_waits
        ld a, (hl)
        ld (hl), #0
        or a
        ret z
        ld a, #1
        ldh (VBK), a
        ld hl, #_column_palettes
        call copy
        xor a
        ldh (VBK), a
        ld hl, #_column_tiles
copy:   ld a, (_column_to)
        ld e, a
        ld a, (_column_to + 1)
        ld d, a
        ld b, #16
cell:   ld a, (hl+)
        ld (de), a
        ld a, e
        add a, #32
        ld e, a
        jr nc, same_page
        inc d
same_page:
        dec b
        jr nz, cell
        ret
