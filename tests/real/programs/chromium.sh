# packages: chromium
# version: chromium --version | cut -d ' ' -f 2
# A page with script and a canvas, headless, its processes in their sandboxes where the system allows it (not as root).
cat >page.html <<-'END'
	<html><body><h1 id=h>x</h1><canvas id=c width=300 height=200></canvas><script>
	let a = []; for (let i = 0; i < 300000; i++) a.push({ i, s: String(i) });
	document.getElementById('h').textContent = 'sum ' + a.reduce((x, y) => x + y.i, 0);
	const g = document.getElementById('c').getContext('2d');
	for (let i = 0; i < 200; i++) { g.fillStyle = `hsl(${i}, 80%, 50%)`; g.fillRect(i, i, 50, 20); }
	</script><p style="font: 30px sans-serif">text</p></body></html>
END
mkdir home && export HOME=$PWD/home
browser="chromium --headless --disable-gpu --disable-dev-shm-usage"
if [ $(id -u) = 0 ]; then
	chown -R nobody .
	if setpriv --reuid nobody --clear-groups unshare -U true 2>/dev/null; then as="setpriv --reuid nobody --clear-groups"
	else browser="$browser --no-sandbox"; fi
fi
${as:-} $browser --user-data-dir=$PWD/profile --dump-dom file://$PWD/page.html 2>dom.log
${as:-} $browser --user-data-dir=$PWD/profile --screenshot=$PWD/page.png --window-size=400,400 file://$PWD/page.html >/dev/null 2>png.log
sha256sum page.png
