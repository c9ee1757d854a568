; What a trainer may read: one label for each variable. The three creatures are `struct creature` of creatures.h, field by
; field in the same order.

        .module state
        .area _DATA

_creatures::
_creature_1_kind::       .ds 1
_creature_1_y::          .ds 1
_creature_1_x::          .ds 2
_creature_1_dx::         .ds 1
_creature_1_timer::      .ds 1
_creature_1_steps::      .ds 1
_creature_1_home::       .ds 1

_creature_2_kind::       .ds 1
_creature_2_y::          .ds 1
_creature_2_x::          .ds 2
_creature_2_dx::         .ds 1
_creature_2_timer::      .ds 1
_creature_2_steps::      .ds 1
_creature_2_home::       .ds 1

_creature_3_kind::       .ds 1
_creature_3_y::          .ds 1
_creature_3_x::          .ds 2
_creature_3_dx::         .ds 1
_creature_3_timer::      .ds 1
_creature_3_steps::      .ds 1
_creature_3_home::       .ds 1
