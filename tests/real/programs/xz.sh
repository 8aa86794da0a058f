# packages: xz-utils zstd
# version: xz --version | sed -n '1s/.* //p'
cat /usr/share/perl/5*/*.p[lm] /usr/share/perl/5*/*/*.p[lm] >text
xz -T2 --block-size=300k -k text && zstd -q -T2 -12 text -o text.zst && xz -dc text.xz | cmp - text && zstd -dc text.zst | cmp - text && sha256sum text.xz text.zst
