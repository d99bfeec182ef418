package baseline

import ("testing";"time";cw "github.com/ocslab/ocslab/topology/crosswiring")
func TestProbe(t *testing.T){
 for _,p:=range []int{32,128}{
  for seed:=range uint64(2){
  f:=cw.Fabric{Pods:p,SpinePorts:16,Groups:4,Wiring:cw.Uniform}
  for _,gen:=range []func(cw.Fabric,uint64)(*cw.Demand,error){cw.RandomFull,cw.JobShaped}{
  d,_:=gen(f,seed)
  for i,m:=range []func(cw.Fabric,*cw.Demand,*cw.Config)(*cw.Config,error){Greedy,Helios}{
   s:=time.Now()
   c,err:=m(f,d,nil); if err!=nil{t.Fatal(err)}
   el:=time.Since(s)
   if err:=c.Check();err!=nil{t.Fatal(err)}
   l,_:=cw.LTRR(c.Demand(),d); r,_:=cw.Realised(c.Demand(),d)
   t.Log(p,seed,i,l,r,el)
  }}}
 }
}
