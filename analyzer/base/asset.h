/*
 * asset.h - a file of the source that is in the command as it is: asset_NAME, a text; asset_NAME_end is its end.
 */
#ifndef ASSET_H
#define ASSET_H

#define ASSET(name, path)                                                   \
	__asm__(".pushsection .rodata\n"                                        \
	        ".global asset_" #name "\n"                                     \
	        ".hidden asset_" #name "\n"                                     \
	        ".global asset_" #name "_end\n"                                 \
	        ".hidden asset_" #name "_end\n"                                 \
	        "asset_" #name ":\n.incbin \"" path "\"\n"                      \
	        "asset_" #name "_end:\n.byte 0\n.popsection\n");                \
	extern const char asset_##name[] __attribute__((visibility("hidden"))); \
	extern const char asset_##name##_end[] __attribute__((visibility("hidden")));

#endif
