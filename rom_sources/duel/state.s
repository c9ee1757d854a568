; What a trainer may read: one label for each variable. The two fighters are `struct fighter` of fighter.h, field by
; field in the same order.

        .module state
        .area _DATA

_player::
_player_x::              .ds 1
_player_height::         .ds 1
_player_state::          .ds 1
_player_frames::         .ds 1
_player_phase::          .ds 1
_player_health::         .ds 1
_player_rounds::         .ds 1
_player_buttons::        .ds 1
_player_stun::           .ds 1
_player_push::           .ds 1
_player_air::            .ds 1
_player_drift::          .ds 1
_player_windup::         .ds 1
_player_haste::          .ds 1
_player_has_hit::        .ds 1
_player_faces_left::     .ds 1

_opponent::
_opponent_x::            .ds 1
_opponent_height::       .ds 1
_opponent_state::        .ds 1
_opponent_frames::       .ds 1
_opponent_phase::        .ds 1
_opponent_health::       .ds 1
_opponent_rounds::       .ds 1
_opponent_buttons::      .ds 1
_opponent_stun::         .ds 1
_opponent_push::         .ds 1
_opponent_air::          .ds 1
_opponent_drift::        .ds 1
_opponent_windup::       .ds 1
_opponent_haste::        .ds 1
_opponent_has_hit::      .ds 1
_opponent_faces_left::   .ds 1
