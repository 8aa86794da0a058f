#include "survivors.h"
void survivors_begin(void){}
