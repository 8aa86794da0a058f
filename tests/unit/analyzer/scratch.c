/* scratch.c - see scratch.h */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char scratch_folder[64];
char scratch_file[128];

int
scratch_make(void **state)
{
	strcpy(scratch_folder, "/tmp/kmem-unit-XXXXXX");
	if (mkdtemp(scratch_folder) == NULL ||
	    chmod(scratch_folder, 0755) != 0) // lines of files in a closed one are not shown
		return -1;
	(void)snprintf(scratch_file, sizeof(scratch_file), "%s/case.kmem", scratch_folder);
	return 0;
}

int
scratch_remove(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", scratch_folder);
	return system(command);
}

bool
is_told(const struct model *model, const char *says)
{
	for (size_t i = 0; i < model->damage_count; i++) {
		if (strstr(model->damages[i], says) != NULL)
			return true;
	}
	return false;
}
