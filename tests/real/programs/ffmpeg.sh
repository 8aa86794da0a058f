# packages: ffmpeg
# version: ffmpeg -version | sed -n '1s/ffmpeg version \([^ ]*\).*/\1/p'
# Some hundred libraries; several threads.
ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=320x240:rate=25:duration=4 -c:v mpeg4 -threads 1 -flags +bitexact -fflags +bitexact -y a.mp4
ffmpeg -nostdin -loglevel error -i a.mp4 -vf scale=160:120 -f rawvideo -pix_fmt yuv420p -y b.yuv
sha256sum b.yuv
