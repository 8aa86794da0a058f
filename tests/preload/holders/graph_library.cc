/*
 * The shape of PyTorch's graphs, under its names: a library for graph.cc.
 */
#include <memory>
#include <vector>

namespace torch::autograd
{
struct Node {
	virtual ~Node()
	{
	}
	long numbers[8] = {};
	std::vector<std::pair<std::shared_ptr<Node>, unsigned>> next_edges;
	char *saved = nullptr;
};
struct AutogradMeta {
	virtual ~AutogradMeta()
	{
	}
	std::shared_ptr<Node> grad_fn;
};
namespace generated
{
struct AddBackward0 : Node {
};
} // namespace generated
struct AccumulateGrad : Node {
};

__attribute__((noinline)) std::shared_ptr<Node>
make(bool is_leaf, char *saved)
{
	std::shared_ptr<Node> made(is_leaf ? static_cast<Node *>(new AccumulateGrad) : new generated::AddBackward0);

	made->saved = saved;
	return made;
}

void
add(const std::shared_ptr<Node> &to, const std::shared_ptr<Node> &next)
{
	to->next_edges.emplace_back(next, 0);
}

void *
meta(const std::shared_ptr<Node> &node)
{
	auto *made = new AutogradMeta;

	made->grad_fn = node;
	return made;
}
} // namespace torch::autograd
