/*
 * tail_call.h - a function that goes on by a jump: its frame is not on the stack of what it calls.
 *
 * The library is compiled without this, so that each hook has its frame. TAIL_CALLER in front of the function, TAIL_RETURN for return.
 */
#ifndef TAIL_CALL_H
#define TAIL_CALL_H

#ifdef __clang__
#define TAIL_CALLER
#define TAIL_RETURN __attribute__((musttail)) return
#else
#define TAIL_CALLER __attribute__((optimize("optimize-sibling-calls")))
#define TAIL_RETURN return
#endif

#endif
