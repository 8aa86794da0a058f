# packages: git
# version: git --version | cut -d ' ' -f 3
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='@1000000000 +0000' GIT_COMMITTER_DATE='@1000000000 +0000'
git config --global user.email a@b && git config --global user.name n && git config --global init.defaultBranch main
git init -q one && cd one
for commit in $(seq 40); do
	mkdir -p d$commit
	for file in $(seq 20); do seq $((commit * file)) $((commit * file + 300)) >d$commit/$file; done
	git add -A && git commit -q -m "commit $commit"
done
git branch other HEAD~5 && git checkout -q other && echo more >>d1/1 && git commit -qam other && git merge -q --no-edit main
git repack -adq --threads=2 && git gc -q --aggressive && git fsck --strict && git log --stat | sha256sum
git blame d1/1 | sha256sum
cd .. && git clone -q --no-local one two && git -C two rev-parse HEAD && git -C two ls-tree -r HEAD | wc -l
git -C one diff HEAD~20 | sha256sum && git -C one archive HEAD | sha256sum
