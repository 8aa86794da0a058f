# packages: nodejs
# version: node --version
cat >script.js <<-'END'
	const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
	const { createHash } = require('crypto'), zlib = require('zlib'), { execFileSync } = require('child_process'), fs = require('fs');
	function work(n) {
		let text = []; for (let i = 0; i < 200000; i++) text.push((i * n).toString(36));
		const packed = zlib.deflateSync(Buffer.from(text.join()));
		return createHash('sha256').update(zlib.inflateSync(packed)).digest('hex') + ' ' + packed.length;
	}
	if (!isMainThread) { parentPort.postMessage(work(workerData)); } else {
		const results = [];
		for (let n = 1; n <= 4; n++) new Worker(__filename, { workerData: n }).on('message', m => results[n] = m).on('exit', code => {
			if (code || results.filter(Boolean).length < 4 || results.done) return;
			results.done = true; console.log(results.join('\n'));
			console.log(execFileSync(process.execPath, ['-e', 'console.log([1,2,3].map(x => x * 2).join())']).toString());
			fs.writeFileSync('file', Buffer.alloc(5000000, 'ab')); console.log(fs.readFileSync('file').length);
			try { eval('throw new RangeError("x".repeat(10))'); } catch (e) { console.log(e.name, e.message); }
		});
	}
END
node script.js
