#pragma once
#include <stdint.h>

enum match_phase { ROUND_INTRO, ROUND_RUNS, ROUND_OVER, FIGHT_OVER };
enum result { RESULT_NONE, RESULT_WON, RESULT_LOST };

extern uint8_t level;         // 1 to 3
extern uint8_t round_number;  // 1 to 3
extern uint8_t fight_timer;   // counts down from 90 to 0, ten a second
extern uint8_t fight_result;
extern uint8_t match_phase;

void match_begin(void);
uint8_t match_update(void);  // one frame; 1 when the player has asked to go on after the fight
