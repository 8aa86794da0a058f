# packages: ruby
# version: ruby -e 'print RUBY_VERSION'
ruby -e '
	h = Hash.new { |m, k| m[k] = [] }
	300000.times { |i| h["k#{i % 5003}"] << "v#{i}" }
	puts h.size, h.values.sum(&:size), h.keys.sort.first(3).inspect
	puts 4.times.map { |n| Thread.new { (1..50000).inject(:+) * n } }.map(&:value).inspect
	r, w = IO.pipe; pid = fork { w.write("x" * 100000); w.close; exit!(3) }; w.close; puts r.read.size; Process.wait(pid); puts $?.exitstatus
	f = Fiber.new { 5.times { |i| Fiber.yield("s" * i) } }; puts 5.times.map { f.resume.size }.inspect
	begin; raise ArgumentError, "x" * 50; rescue => e; puts e.message.size; end; GC.compact rescue nil; GC.start'
