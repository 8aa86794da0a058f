# packages: g++
# version: g++ -dumpfullversion
# A large translation unit: much of the standard library, many templates, optimised; compared is the object file.
{
	printf '#include <%s>\n' algorithm chrono functional future iostream map memory random ranges regex set sstream string \
		thread tuple unordered_map variant vector
	for n in $(seq 60); do
		echo "template <int N> struct S$n { std::map<int, std::vector<std::string>> m; std::variant<int, std::string, double> v;"
		echo "void f(int i) { m[i].push_back(std::to_string(i * N)); v = std::to_string(i); std::sort(m[i].begin(), m[i].end()); }"
		echo "bool g(const std::string &s) { return std::regex_match(s, std::regex(\"(a|b)*$n+\")); } };"
		echo "void h$n() { S$n<$n> s; for (int i = 0; i < $n; i++) s.f(i); std::cout << s.g(\"ab$n\") << s.m.size() << std::endl; }"
	done
} >large.cc
g++ -std=c++20 -O2 -g0 -c large.cc -o large.o && sha256sum large.o
