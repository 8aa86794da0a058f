# packages: g++
# version: g++ -dumpfullversion
# 50 shared libraries, each linked to the next; exceptions of each are thrown through all of those before it, 2000 times, by 4
# threads; then each is closed and loaded again.
# Compilers are watched elsewhere.
alone() { env -u LD_PRELOAD "$@"; }
{
	printf '#pragma once\n#include <stdexcept>\n#include <string>\n#include <vector>\n'
	for n in $(seq 50); do
		echo "struct E$n : std::runtime_error { std::vector<int> v;"
		echo "E$n(int i) : std::runtime_error(std::string(40 + i % 9, 'x')), v(i % 100 + 1) {} };"
	done
} >errors.h
for n in $(seq 50); do
	next=$((n + 1))
	{
		echo '#include "errors.h"'
		[ $n = 50 ] || echo "int call$next(int, int);"
		echo "int call$n(int depth, int i) { std::vector<std::string> local(3, std::string(100, 'a' + $n % 26));"
		echo "  if (depth == $n) throw E$n(i);"
		if [ $n = 50 ]; then echo '  return (int)local.size(); }'
		else echo "  try { return call$next(depth, i) + (int)local.size(); } catch (const E$next &e) { if (i % 2) throw E$n((int)e.v.size()); throw; } }"; fi
		echo "extern \"C\" int sum$n() { int *v = new int[100]; for (int i = 0; i < 100; i++) v[i] = i * $n; int s = 0; for (int i = 0; i < 100; i++) s += v[i]; delete[] v; return s; }"
	} >lib$n.cc
	tail -n 1 lib$n.cc >plugin$n.cc
done
cat >main.cc <<-'END'
	#include <dlfcn.h>
	#include <cstdio>
	#include <stdexcept>
	#include <string>
	#include <thread>
	#include <vector>
	int call1(int, int);
	int main() {
		long caught[4] = {};
		std::vector<std::thread> threads;
		for (int t = 0; t < 4; t++)
			threads.emplace_back([&caught, t] {
				for (int i = 0; i < 2000; i++)
					try { caught[t] += call1(i % 51 + 1, i); } catch (const std::runtime_error &e) { caught[t] += (long)std::string(e.what()).size(); }
			});
		for (auto &thread : threads) thread.join();
		printf("%ld %ld %ld %ld\n", caught[0], caught[1], caught[2], caught[3]);
		long sum = 0;
		for (int round = 0; round < 20; round++)
			for (int n = 1; n <= 50; n++) {
				std::string name = "./plugin" + std::to_string(n) + ".so";
				void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
				if (!library) { puts(dlerror()); return 1; }
				sum += ((int (*)())dlsym(library, ("sum" + std::to_string(n)).c_str()))();
				dlclose(library);
			}
		printf("%ld\n", sum);
	}
END
alone g++ -w -g -O1 -fPIC -x c++-header errors.h -o errors.h.gch
for n in $(seq 50 -1 1); do
	alone g++ -w -g -O1 -fPIC -shared lib$n.cc -o lib$n.so $([ $n = 50 ] || echo -L. -l:lib$((n + 1)).so) -Wl,-rpath,.
	alone g++ -O1 -g -fPIC -shared plugin$n.cc -o plugin$n.so
done
alone g++ -O1 -g main.cc -o main -L. -l:lib1.so -Wl,-rpath,. -pthread
./main
