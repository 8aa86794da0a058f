# packages: default-jdk-headless
# version: java -version 2>&1 | sed -n '1s/[^"]*"\([^"]*\)".*/\1/p'
cat >Hello.java <<-'END'
	import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
	public class Hello {
		static int deep(int n) { return n == 0 ? 0 : 1 + deep(n - 1); }
		public static void main(String[] a) throws Exception {
			ExecutorService pool = Executors.newFixedThreadPool(4);
			List<Future<Long>> all = new ArrayList<>();
			for (int t = 0; t < 8; t++) { final int n = t; all.add(pool.submit(() -> { Map<String, Integer> m = new HashMap<>();
				for (int i = 0; i < 200000; i++) m.merge("k" + i * n % 5003, 1, Integer::sum); return m.values().stream().mapToLong(x -> x).sum() + m.size(); })); }
			for (Future<Long> f : all) System.out.println(f.get());
			pool.shutdown();
			java.nio.ByteBuffer b = java.nio.ByteBuffer.allocateDirect(30_000_000); System.out.println(b.capacity());
			try { deep(100_000_000); } catch (StackOverflowError e) { System.out.println("stack overflow caught"); }
			try { Object o = null; o.toString(); } catch (NullPointerException e) { System.out.println("null caught"); }
			System.gc();
			System.out.println(IntStream.range(0, 1000).mapToObj(Integer::toString).collect(Collectors.joining()).hashCode());
		}
	}
END
javac Hello.java && java -Xmx256m -cp . Hello
