/*
 * words_test.cc - a test of counting words: the counts of one text are gone when the next one comes.
 */
#include <map>
#include <string>

namespace
{

std::map<std::string, int> *
count_words(int text)
{
	auto *counts = new std::map<std::string, int>;

	for (int i = 0; i < 100; i++)
		++(*counts)["a word that is too long to stand in the string itself " + std::to_string(text * 50 + i)];
	return counts;
}

} // namespace

int
main()
{
	for (int text = 0; text < 100; text++) {
		std::map<std::string, int> *counts = count_words(text);

		if (counts->size() != 100)
			return 1;
#ifndef FORGETS
		delete counts;
#endif
	}
	return 0;
}
