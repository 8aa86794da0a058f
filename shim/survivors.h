void survivors_begin(void);
