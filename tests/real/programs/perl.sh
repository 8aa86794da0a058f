# packages: perl
# version: perl -e 'print $^V'
# Hashes, regular expressions, sorting, fork and pipes.
perl -e '
	my %seen; my $sum = 0;
	for my $i (1 .. 400000) { my $k = "k" . ($i * 7919 % 100003); $seen{$k} .= chr(65 + $i % 26); }
	for my $k (sort keys %seen) { $sum += length($1) if $seen{$k} =~ /([A-M]+)/; }
	print scalar(keys %seen), " $sum\n";
	for my $n (1 .. 20) { my $pid = open(my $h, "-|") // die; if (!$pid) { print "x" x (1000 * $n); exit 0 } local $/; print length(<$h>), "\n"; }'
