# packages: php-cli
# version: php -r 'echo PHP_VERSION;'
php -d memory_limit=512M -r '
	$a = []; for ($i = 0; $i < 300000; $i++) $a["k" . $i % 5003][] = md5((string)$i);
	ksort($a); echo count($a), " ", md5(json_encode($a)), "\n"; unset($a); gc_collect_cycles();
	echo strlen(gzcompress(str_repeat("abcdefg", 300000))), "\n"; echo preg_match_all("/(a|b)+c/", str_repeat("aabc", 10000)), "\n";'
