/*
 * Keeps blocks in a graph as PyTorch has it, then waits: "chain" of 20 nodes, or "wide", of 40,201.
 */
#include <cstdio>
#include <cstring>
#include <memory>

namespace torch::autograd
{
struct Node;
std::shared_ptr<Node> make(bool is_leaf, char *saved);
void add(const std::shared_ptr<Node> &to, const std::shared_ptr<Node> &next);
void *meta(const std::shared_ptr<Node> &node);
} // namespace torch::autograd

static void *volatile total_loss;

__attribute__((noinline)) static char *
activations()
{
	char *block = new char[40000];

	memset(block, 1, 40000);
	return block;
}

static std::shared_ptr<torch::autograd::Node>
chain()
{
	std::shared_ptr<torch::autograd::Node> last = torch::autograd::make(true, nullptr);

	for (int i = 0; i < 19; i++) {
		std::shared_ptr<torch::autograd::Node> next = torch::autograd::make(false, activations());

		torch::autograd::add(next, last);
		last = next;
	}
	return last;
}

static std::shared_ptr<torch::autograd::Node>
wide()
{
	std::shared_ptr<torch::autograd::Node> first = torch::autograd::make(false, nullptr);

	for (int i = 0; i < 200; i++) {
		std::shared_ptr<torch::autograd::Node> next = torch::autograd::make(false, activations());

		torch::autograd::add(first, next);
		for (int k = 0; k < 200; k++)
			torch::autograd::add(next, torch::autograd::make(true, nullptr));
	}
	return first;
}

static void
overwrite_stack()
{
	volatile char space[20000];

	memset(const_cast<char *>(space), 0, sizeof(space));
}

int
main(int, char **words)
{
	total_loss = torch::autograd::meta(std::strcmp(words[1], "wide") == 0 ? wide() : chain());
	overwrite_stack();
	std::puts("ready");
	std::fflush(stdout);
	return std::getchar() == 'x' ? 0 : 3;
}
