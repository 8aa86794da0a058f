/*
 * containers.cc - a C++ program with many small containers: maps of strings, lists, vectors that grow.
 *
 *   containers ROUNDS     after a tenth as many to warm up
 *
 * Called by   bench.py.
 */
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "steady.h"

namespace
{

struct order {
	std::string customer;
	std::vector<int> items;
	std::list<std::string> notes;
};

unsigned long
round_once(unsigned seed)
{
	std::map<int, order> orders;
	std::unordered_map<std::string, std::shared_ptr<std::vector<double>>> prices;
	unsigned long sum = 0;

	for (unsigned i = 0; i < 400; i++) {
		order &one = orders[(int)((i * 2654435761u + seed) % 1009)];

		one.customer = "customer number " + std::to_string(i + seed) + " of the whole year";
		for (unsigned item = 0; item < i % 20; item++)
			one.items.push_back((int)item);
		one.notes.emplace_back("left at the door of the neighbour, " + std::to_string(i));
		prices[one.customer.substr(0, 20)] = std::make_shared<std::vector<double>>(i % 7 + 1, 1.5);
	}
	for (const auto &[number, one] : orders)
		sum += (unsigned long)number + one.customer.size() + one.items.size() + one.notes.size();
	for (unsigned i = 0; i < 1009; i += 2)
		orders.erase((int)i);
	return sum + prices.size() + orders.size();
}

} // namespace

int
main(int count, char **words)
{
	unsigned long rounds = count > 1 ? std::strtoul(words[1], nullptr, 10) : 0;
	unsigned long sum = 0;

	for (unsigned i = 0; i < rounds / 10; i++)
		sum += round_once(i);
	steady_time start = steady_now();
	for (unsigned i = 0; i < rounds; i++)
		sum += round_once(i);
	steady_time end = steady_now();
	steady_report(start, end, rounds);
	return sum == 0;
}
