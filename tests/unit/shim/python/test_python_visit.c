/*
 * test_python_visit.c - a thread's own copies of bytecode: found, refused when they cannot be, asked for when they may be gone.
 */
#include "test.h"

#include <sys/mman.h>

#include "python/python_fakes.h"
#include "python/python_runtime.h"
#include "python/python_visit.h"

enum { COPIES = 3, UNITS = 16 };

static struct python_interpreter python;
static struct {
	_Alignas(16) char code[512];
	char frame[80];
	uint64_t copies[1 + COPIES]; // count, addresses
	uint16_t bytecode[COPIES][UNITS];
} its;
static bool is_attached;

static void *
give_state(void)
{
	return is_attached ? &its : NULL;
}

SETUP(setup)
{
	python = fake_interpreter();
	python.layout = *python_layout_find(0x030e00f0, true);
	python_runtime.current_state = give_state;
	memset(&its, 0, sizeof(its));
	fake_put(its.code, python.layout.object_type, python.types.code);
	fake_put(its.code, python.layout.object_size, UNITS);
	fake_put(its.code, python.layout.code_copies, (uint64_t)its.copies);
	fake_put(its.frame, python.layout.frame_code, (uint64_t)its.code | 1); // tagged
	its.copies[0] = COPIES;
	its.copies[1] = (uint64_t)its.code + python.layout.code_bytecode;
	for (unsigned i = 1; i < COPIES; i++)
		its.copies[1 + i] = (uint64_t)its.bytecode[i];
	is_attached = true;
}

static enum python_visit_kind
judge(int32_t copy, uint64_t instruction, uint32_t *offset)
{
	struct python_visit visit;

	memcpy(its.frame + python.layout.frame_copy, &copy, sizeof(copy));
	fake_put(its.frame, python.layout.frame_instruction, instruction);
	python_visit_read(&python.layout, (uint64_t)its.frame, &visit);
	return python_visit_judge(&python, &visit, offset);
}

TEST(each_copy_has_its_own_beginning)
{
	uint32_t offset;

	for (unsigned attached = 0; attached < 2; attached++) {
		is_attached = attached;
		for (unsigned unit = 0; unit < UNITS; unit++) {
			assert_int_equal(judge(0, its.copies[1] + 2 * unit, &offset), PYTHON_VISIT_FRAME);
			assert_int_equal(offset, 2 * unit);
			for (int copy = 1; copy < COPIES; copy++) {
				assert_int_equal(judge(copy, (uint64_t)&its.bytecode[copy][unit], &offset), PYTHON_VISIT_FRAME);
				assert_int_equal(offset, 2 * unit);
			}
		}
	}
}

TEST(a_copy_that_is_not_there_is_refused)
{
	uint64_t first = (uint64_t)its.bytecode[1];
	uint32_t offset;

	for (unsigned attached = 0; attached < 2; attached++) {
		is_attached = attached;
		assert_int_equal(judge(COPIES, first, &offset), PYTHON_VISIT_INVALID);
		assert_int_equal(judge(-1, first, &offset), PYTHON_VISIT_INVALID);
		assert_int_equal(judge(INT32_MAX, first, &offset), PYTHON_VISIT_INVALID);
		assert_int_equal(judge(2, first, &offset) == PYTHON_VISIT_FRAME && offset < 2 * UNITS, false);
		its.copies[2] = 0; // cleared, the thread that had it has ended
		assert_int_equal(judge(1, first, &offset), PYTHON_VISIT_INVALID);
		its.copies[2] = first;
		fake_put(its.code, python.layout.code_copies, 1);
		assert_int_equal(judge(1, first, &offset), PYTHON_VISIT_INVALID);
		fake_put(its.code, python.layout.code_copies, (uint64_t)its.copies);
	}
}

/* The array that a detached thread has just been led to may be freed, its page gone. */
TEST(a_detached_thread_asks_first)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t offset;

	assert_ptr_not_equal(page, MAP_FAILED);
	is_attached = false;
	fake_put(its.code, python.layout.code_copies, (uint64_t)page);
	assert_int_equal(judge(1, (uint64_t)its.bytecode[1], &offset), PYTHON_VISIT_INVALID);
	munmap(page, 4096);
}

RUN_TESTS(setup, NULL)
