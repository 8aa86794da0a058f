# packages: gcc make zlib1g-dev perl
# source: git
# build: make -s NO_CURL=1 NO_EXPAT=1 NO_OPENSSL=1 NO_GETTEXT=1 NO_TCLTK=1 NO_PYTHON=1 CFLAGS='-O1 -g'
# version: $SOURCE/git --version | cut -d ' ' -f 3
# Git's own tests of what all else needs: what each says of itself, and which of its parts fail.
here=$PWD
cd $SOURCE/t
for file in t000*.sh t001*.sh t002*.sh t1000-*.sh t1300-*.sh t3200-*.sh t4013-*.sh t5300-*.sh; do
	status=0
	TEST_OUTPUT_DIRECTORY=$here timeout 300 sh $file --root=$here >$here/log 2>&1 </dev/null || status=$?
	echo "$file $status $(grep -c '^ok' $here/log) $(grep -a '^# .* among\|^1\.\.' $here/log | tr '\n' ' ')"
	grep -a '^not ok' $here/log || true
done
