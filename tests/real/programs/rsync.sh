# packages: rsync
# version: rsync --version | awk 'NR == 1 { print $3 }'
cp -r /usr/share/perl from
rsync -a --checksum from/ to/ && rm -rf to/5* && rsync -az --delete --no-whole-file from/ to/ && diff -r from to
find to -type f | wc -l
