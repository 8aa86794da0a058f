# packages: rsync
# version: rsync --version | sed -n '1s/.*version \([^ ]*\).*/\1/p'
cp -r /usr/share/perl from
rsync -a --checksum from/ to/ && rm -rf to/5* && rsync -az --delete --no-whole-file from/ to/ && diff -r from to
find to -type f | wc -l
